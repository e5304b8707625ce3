"""One decision as people read it."""

from typing import Any, Final

from nestor.problem.trajectory import Trajectory

_EFFECTS: Final = ("not tried", "inlined", "callee deleted", "failed")


def describe(trajectory: Trajectory, row: int) -> dict[str, Any]:
    """Return the call site of ``row``: its key, functions, answers, logit and effect.

    ``copy_of`` is the key of the site of whose call this one is a copy, None if it is none.
    """
    record = trajectory.decisions[row]

    def name(column: str) -> str:
        number = int(record[column]) % 2**64
        return trajectory.names.get(number, f"{number:016x}")

    return {
        "site": f"{int(record['site']) % 2**64:016x}",
        "caller": name("caller"),
        "callee": name("callee"),
        "default": bool(trajectory.default[row]),
        "answer": bool(record["answer"]),
        "logit": float(record["logit"]),
        "log_probability": float(record["log_probability"]),
        "overridden": bool(record["overridden"]),
        "effect": _EFFECTS[int(record["effect"])],
        "copy_of": f"{original:016x}" if (original := int(record["copy_of"]) % 2**64) else None,
    }
