"""Where the calls stand in the source about which the plugin asked.

The advisor that logs is LLVM's own, which writes a remark for each question, and for each call
that must be inlined without one: the questions are a part of the remarks, in the same order.
"""

from typing import Final

from nestor.problem.places import CompilerRemark, Places, function_places
from nestor.problem.trajectory import Trajectory

REMARKS: Final = "inline-ml"
"""The pass under whose name LLVM's advisors for learned policies write remarks."""
STOCK_REMARKS: Final = "inline"
"""The pass under whose name the inliner writes remarks of its own."""

_COMPARED: Final = "cost_estimate"
"""A feature that tells calls of one function in another apart."""


def places(log: Trajectory, remarks: list[CompilerRemark]) -> Places:
    """Return the places of the questions of ``log``.

    :param log: with names.
    :param remarks: of :data:`REMARKS`, of the same compile.
    :return: without places of questions if the remarks are not of this log.
    """
    functions = function_places(remarks)
    remaining = iter([remark for remark in remarks if remark.pass_name == REMARKS])
    found: list[str] = []
    for row in log.decisions:
        wanted = (
            _name(log, row["caller"]),
            _name(log, row["callee"]),
            str(int(row[_COMPARED])),
        )
        for remark in remaining:
            if wanted == (
                _plain(remark.function),
                _plain(remark.argument("Callee")),
                remark.argument(_COMPARED),
            ):
                found.append(remark.place)
                break
        else:
            return Places(("",) * len(log), functions)
    return Places(tuple(found), functions)


def _name(log: Trajectory, number: int) -> str:
    return _plain(log.names.get(int(number) % 2**64, ""))


def _plain(name: str) -> str:
    """Return a symbol without the mark that keeps LLVM from mangling it."""
    return name.removeprefix("\x01")
