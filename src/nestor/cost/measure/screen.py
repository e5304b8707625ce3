"""Refuse, by decoding alone, blocks that cannot be measured: undecodable bytes and control flow."""

from typing import Final

from iced_x86 import FlowControl

from nestor.cost.isa.decoding import DecodeError, raw

_STRAIGHT: Final = (FlowControl.NEXT, FlowControl.EXCEPTION)
"""Goes on, or ends in the harness as what it is."""


def screen(block: bytes) -> tuple[str, int]:
    """Return the status of a block that cannot be measured, else empty, and its instructions.

    A jump within unrolled copies would land in another copy and give a number that means
    nothing, so control flow is refused; the last instruction of a block in a program is left out.
    """
    count = 0
    try:
        for instruction in raw(block):
            count += 1
            if instruction.flow_control not in _STRAIGHT:
                return "control flow", count
    except DecodeError:
        return "undecodable", count
    return "", count
