"""What the register allocator asks, and the rows of features that policies read.

A live range needs a register and none is free. The compiler sends 33 candidates: up to 32 registers
in the order in which it would try them, each with what is known of the live ranges that would have
to leave it, and at the end the live range itself, which stands for evicting nothing. A mask says
which of them may be chosen. The rows of a question are the candidates that may be; an action is the
number of a row, the answer its index among the 33 (llvm/lib/CodeGen/MLRegAllocEvictAdvisor.cpp).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelError, Tensor
from nestor.problem.trajectory import F64, I64

CANDIDATES: Final = 33
OWN: Final = 32
"""The index of the live range that needs a register: choosing it evicts nothing."""

MASK: Final = "mask"
WEIGHT: Final = "use_def_density"
"""The greatest spill weight of a candidate's live ranges, divided by the greatest of all."""

POSITION: Final = "position"
IS_OWN: Final = "is_own"
WEIGHT_TO_OWN: Final = "weight_to_own"
WEIGHT_TO_LEAST: Final = "weight_to_least"
CANDIDATE_COUNT: Final = "candidates"
DERIVED: Final = (POSITION, IS_OWN, WEIGHT_TO_OWN, WEIGHT_TO_LEAST, CANDIDATE_COUNT)
"""Features that follow from what the compiler sends:

``position``         index among the 33; registers stand in the order of allocation
``is_own``           1 for the live range that needs a register
``weight_to_own``    log2 of the weight over that of the live range that needs a register
``weight_to_least``  log2 of the weight over the least weight of the other candidates
``candidates``       how many candidates may be chosen; the same for all of a question
"""

_LARGEST_LOG: Final = 32.0
"""Logarithms of ratios are cut here, where a weight of 0 lies."""


@dataclass(frozen=True)
class Layout:
    """Where the features stand in what the compiler sends."""

    per_candidate: tuple[str, ...]
    """Tensors with a value for each candidate, without the mask."""
    per_question: tuple[str, ...]
    """Tensors with one value."""

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> "Layout":
        """Return the layout of the tensors that a compiler announces.

        :raises ChannelError: if it asks in a way that is not supported.
        """
        shapes = {tensor.name: int(np.prod(tensor.shape)) for tensor in tensors}
        wrong = [name for name, size in shapes.items() if size not in (1, CANDIDATES)]
        needed = (MASK, WEIGHT, "nr_broken_hints", "nr_urgent", "is_hint", "is_local")
        wrong += [name for name in needed if shapes.get(name) != CANDIDATES]
        if wrong:
            raise ChannelError(
                f"This compiler asks about eviction in a way that is not supported ({wrong[0]});"
                " use LLVM 22."
            )
        return Layout(
            tuple(n for n, size in shapes.items() if size == CANDIDATES and n != MASK),
            tuple(n for n, size in shapes.items() if size == 1),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of :attr:`Question.matrix`."""
        return (*self.per_candidate, *self.per_question, *DERIVED)


LLVM_22: Final = Layout(
    per_candidate=(
        "is_free",
        "nr_urgent",
        "nr_broken_hints",
        "is_hint",
        "is_local",
        "nr_rematerializable",
        "nr_defs_and_uses",
        "weighed_reads_by_max",
        "weighed_writes_by_max",
        "weighed_read_writes_by_max",
        "weighed_indvars_by_max",
        "hint_weights_by_max",
        "start_bb_freq_by_max",
        "end_bb_freq_by_max",
        "hottest_bb_freq_by_max",
        "liverange_size",
        WEIGHT,
        "max_stage",
        "min_stage",
    ),
    per_question=("progress",),
)
"""What LLVM 22 sends; the features of a compile without a question, which announces none."""


@dataclass(frozen=True)
class Question:
    """One question of the register allocator."""

    layout: Layout
    tensors: npt.NDArray[Any]
    """A structured scalar with the tensors as the compiler sent them."""

    @cached_property
    def allowed(self) -> I64:
        """Indices of the candidates that may be chosen, ascending, ``[rows]``."""
        return np.flatnonzero(self.tensors[MASK].reshape(-1))

    @cached_property
    def table(self) -> F64:
        """The compiler's features of all candidates, ``[33, per_candidate]``; always finite.

        The compiler divides by the largest value of the question. Where that is infinite (a live
        range that cannot be spilled), infinity over infinity arrives as "not a number": it is 1,
        the largest value, and the others are 0.
        """
        rows = [self.tensors[name].reshape(-1) for name in self.layout.per_candidate]
        return np.nan_to_num(np.array(rows, dtype=np.float64).T, nan=1.0)

    def values(self, name: str) -> F64:
        """Return a feature of the compiler for all candidates, ``[33]``."""
        values: F64 = self.table[:, self.layout.per_candidate.index(name)]
        return values

    @cached_property
    def weight(self) -> F64:
        """Spill weight of each candidate over the greatest, ``[33]``, from 0 to 1."""
        return self.values(WEIGHT)

    @cached_property
    def matrix(self) -> F64:
        """All features of the candidates that may be chosen, ``[rows, len(layout.features)]``."""
        rows = self.allowed
        own = rows == OWN
        weight = self.weight[rows]
        others = weight[~own]
        shared = [float(self.tensors[name].reshape(-1)[0]) for name in self.layout.per_question]
        derived = [
            rows.astype(np.float64),
            own.astype(np.float64),
            _log_ratio(weight, float(self.weight[OWN])),
            _log_ratio(weight, float(others.min()) if others.size else 0.0),
            np.full(len(rows), float(len(rows))),
        ]
        same = np.broadcast_to(np.nan_to_num(shared, nan=1.0), (len(rows), len(shared)))
        return np.concatenate([self.table[rows], same, np.array(derived).T], axis=1)


def channel_options(base: Path) -> tuple[str, ...]:
    """Return LLVM's options that make the eviction advisor use the channel at ``base``."""
    return (
        "-regalloc-enable-advisor=release",
        f"-regalloc-evict-interactive-channel-base={base}",
    )


def _log_ratio(values: F64, divisor: float) -> F64:
    least = 2.0**-_LARGEST_LOG
    ratio = np.log2(np.maximum(values, least)) - np.log2(max(divisor, least))
    result: F64 = np.clip(ratio, -_LARGEST_LOG, _LARGEST_LOG)
    return result
