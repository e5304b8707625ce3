"""Cut the code of a function into basic blocks.

A block ends before the instruction that may leave it: jumps, calls, returns, traps and the like are
no part of any block, as in BHive. It also ends where something may jump to: at the target of a
direct jump of the same function, and at ``endbr64``, which compilers put where indirect jumps land.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import iced_x86
from iced_x86 import Code, FlowControl, Mnemonic, OpKind

_JUMPS: Final = frozenset({FlowControl.UNCONDITIONAL_BRANCH, FlowControl.CONDITIONAL_BRANCH})
_NEVER_FALLS_THROUGH: Final = frozenset(
    {
        FlowControl.UNCONDITIONAL_BRANCH,
        FlowControl.INDIRECT_BRANCH,
        FlowControl.RETURN,
        FlowControl.INTERRUPT,
        FlowControl.EXCEPTION,
    }
)


@dataclass
class Pieces:
    """What became of a function."""

    blocks: list[bytes] = field(default_factory=list)
    """The blocks that hold instructions, in the order of their addresses."""
    empty: int = 0
    """Blocks of nothing but the instruction that leaves them."""
    undecodable: int = 0
    """Places where bytes cannot be decoded; the block before is dropped, as it may be data too."""


class _Step(NamedTuple):
    """One instruction, or a run of undecodable bytes."""

    start: int
    end: int
    flow: int
    """Of iced-x86's ``FlowControl``; -1 for undecodable bytes."""
    leads: bool
    """A block begins here even if no jump in the function leads here."""
    pads: bool
    """Does nothing, as the filling between functions and blocks."""


def split(code: bytes) -> Pieces:
    """Cut ``code``, which is entered at its beginning, into blocks.

    Behind undecodable bytes it goes on at the next jump target met so far, or not at all.
    """
    targets: set[int] = {0}
    steps = list(_sweep(code, targets))
    pieces = Pieces()
    start = 0  # of the block that is open
    reachable = True  # by falling through from what stands before
    for step in steps:
        if step.flow < 0:
            pieces.undecodable += 1
            start, reachable = step.end, False
            continue
        if (step.leads or step.start in targets) and start < step.start:
            pieces.blocks.append(code[start : step.start])
            start = step.start
        if step.start in targets:
            reachable = True
        if step.flow != FlowControl.NEXT:
            if start < step.start:
                pieces.blocks.append(code[start : step.start])
            elif not step.pads:
                pieces.empty += 1
            start = step.end
            reachable = step.flow not in _NEVER_FALLS_THROUGH
        elif step.pads and not reachable and start == step.start:
            start = step.end  # not reachable
        else:
            reachable = True
    if steps and steps[-1].flow == FlowControl.NEXT and start < steps[-1].end:
        pieces.blocks.append(code[start : steps[-1].end])
    return pieces


def _sweep(code: bytes, targets: set[int]) -> Iterator[_Step]:
    """Yield the instructions of ``code`` in order, and collect where its jumps go."""
    decoder = iced_x86.Decoder(64, code)
    instruction = iced_x86.Instruction()
    ahead: list[int] = []  # targets, the nearest first
    while decoder.can_decode:
        start = decoder.position
        decoder.decode_out(instruction)
        if instruction.is_invalid:
            while ahead and ahead[0] <= start:
                heapq.heappop(ahead)
            end = ahead[0] if ahead else len(code)
            yield _Step(start, end, -1, leads=False, pads=False)
            decoder.position = end
            decoder.ip = end
            continue
        flow = instruction.flow_control
        if flow in _JUMPS and instruction.op0_kind == OpKind.NEAR_BRANCH64:
            target = instruction.near_branch_target
            if target < len(code) and target not in targets:
                targets.add(target)
                heapq.heappush(ahead, target)
        yield _Step(
            start,
            decoder.position,
            flow,
            leads=instruction.code == Code.ENDBR64,
            pads=instruction.mnemonic == Mnemonic.NOP or code[start] == 0xCC,
        )
