"""Make a schedule say which operation it applies, to find where mlir-opt crashes or hangs."""

import re
from typing import Final

from nestor.schedules.language.linking import Linked
from nestor.schedules.language.text import Place, blanked

_REMARK: Final = re.compile(r"remark: nestor-at (\d+)")
_STATEMENT: Final = re.compile(r"\s*(?:%[\w$.:, %-]+=\s*)?transform\.(?!named_sequence|yield)")


def traced(linked: Linked) -> str:
    """Return the schedule with a remark of the line before each operation of a sequence.

    Remarks go to standard error unbuffered, so that the last one survives a crash.
    """
    code = blanked(linked.text)
    lines, out, depth, bodies = linked.text.split("\n"), [], 0, [1]
    for number, (line, plain) in enumerate(zip(lines, code.split("\n"), strict=True), 1):
        if depth == bodies[-1] + 1 and _STATEMENT.match(plain):
            name = f"%nestor_line_{number}"
            out.append(
                f"{name} = transform.param.constant {number} : i64 -> !transform.param<i64> "
                f'transform.debug.emit_param_as_remark {name}, "nestor-at {number}"'
                f" : !transform.param<i64> {line}"
            )
        else:
            out.append(line)
        if "transform.foreach" in plain:
            bodies.append(depth)
        depth += sum(plain.count(c) for c in "{([") - sum(plain.count(c) for c in "})]")
        while len(bodies) > 1 and depth <= bodies[-1]:
            bodies.pop()
    return "\n".join(out)


def last_place(stderr: str, linked: Linked) -> Place | None:
    """Return the place of the last operation that a traced schedule began."""
    found = _REMARK.findall(stderr)
    return linked.place_of(int(found[-1])) if found else None
