"""What the register allocator asks, and the rows of features that policies read.

A live range needs a register and none is free. The compiler describes 33 candidates: up to 32
registers in the order in which it would try them, each with what is known of the live ranges that
would have to leave it, and at the end the live range itself, which stands for evicting nothing. A
mask says which of them may be chosen. The rows of a question are the candidates that may be; an
action is the number of a row, the answer its index among the 33
(llvm/lib/CodeGen/MLRegAllocEvictAdvisor.cpp).

The plugin makes the same rows bit for bit (``native/plugin/regalloc/EvictionQuestion.cpp``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.problem.trajectory import F64, I64, Bools

CANDIDATES: Final = 33
OWN: Final = 32
"""The index of the live range that needs a register: choosing it evicts nothing."""

MASK: Final = "mask"
WEIGHT: Final = "use_def_density"
"""The greatest spill weight of a candidate's live ranges, divided by the greatest of all."""

DEFAULT: Final = "eviction_default"
"""The column with the row that the stock heuristic would choose; as a feature of a candidate, 1 for
that row."""

POSITION: Final = "position"
IS_OWN: Final = "is_own"
WEIGHT_TO_OWN: Final = "weight_to_own"
WEIGHT_TO_LEAST: Final = "weight_to_least"
CANDIDATE_COUNT: Final = "candidates"
DERIVED: Final = (POSITION, IS_OWN, WEIGHT_TO_OWN, WEIGHT_TO_LEAST)
"""Features of a candidate that follow from what the compiler sends:

``position``         index among the 33; registers stand in the order of allocation
``is_own``           1 for the live range that needs a register
``weight_to_own``    log2 of the weight over that of the live range that needs a register
``weight_to_least``  log2 of the weight over the least weight of the other candidates
"""

OF_DEFAULT: Final = "_of_default"
"""The end of the name of a feature that is read of the candidate that the stock heuristic chooses,
so that a policy can compare each candidate with that one."""

_LARGEST_LOG: Final = 32.0
"""Logarithms of ratios are cut here."""
_LEAST_WEIGHT: Final = 2.0**-32
_LARGEST: Final = 1e30


@dataclass(frozen=True)
class Layout:
    """Where the features stand in what the compiler sends."""

    per_candidate: tuple[str, ...]
    """Tensors with a value for each candidate, without the mask."""
    per_question: tuple[str, ...]
    """Tensors with one value."""

    @staticmethod
    def of(shapes: Iterable[tuple[str, Sequence[int]]]) -> "Layout":
        """Return the layout of tensors by their names and shapes.

        :raises ValueError: if that is not how a compiler asks about eviction.
        """
        sizes = {name: int(np.prod(shape, dtype=np.int64)) for name, shape in shapes}
        wrong = [name for name, size in sizes.items() if size not in (1, CANDIDATES)]
        wrong += [name for name in (MASK, WEIGHT) if sizes.get(name) != CANDIDATES]
        if wrong:
            raise ValueError(f"a question about eviction has no such tensor '{wrong[0]}'")
        return Layout(
            tuple(n for n, size in sizes.items() if size == CANDIDATES and n != MASK),
            tuple(n for n, size in sizes.items() if size == 1),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that do not depend on the stock heuristic's choice."""
        return (*self.per_candidate, *self.per_question, *DERIVED, CANDIDATE_COUNT)

    @property
    def default_features(self) -> tuple[str, ...]:
        """Names of the features that do."""
        own = (f"{name}{OF_DEFAULT}" for name in (*self.per_candidate, *DERIVED))
        return (DEFAULT, *own)


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
"""What LLVM 22 sends."""


@dataclass(frozen=True)
class Questions:
    """Many questions at once."""

    layout: Layout
    tensors: npt.NDArray[Any]
    """The tensors as the compiler wrote them, structured ``[questions]``."""

    @cached_property
    def mask(self) -> Bools:
        """Which candidates may be chosen, ``[questions, 33]``."""
        mask: Bools = self.tensors[MASK].reshape(-1, CANDIDATES) != 0
        return mask

    @cached_property
    def counts(self) -> I64:
        """How many candidates may be chosen, ``[questions]``."""
        counts: I64 = self.mask.sum(axis=1)
        return counts

    @cached_property
    def first(self) -> I64:
        """The first row of each question, ``[questions]``."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def _nonzero(self) -> tuple[I64, I64]:
        question, index = np.nonzero(self.mask)
        return question, index

    @property
    def question(self) -> I64:
        """The question of each row, ``[rows]``."""
        return self._nonzero[0]

    @property
    def index(self) -> I64:
        """The candidate of each row among the 33, ``[rows]``, ascending in a question."""
        return self._nonzero[1]

    def row_of(self, candidates: I64) -> I64:
        """Return the row within its question of one candidate of each, ``[questions]``."""
        place: I64 = np.cumsum(self.mask, axis=1) - 1
        return place[np.arange(len(candidates)), candidates]

    def columns(self) -> dict[str, F64]:
        """Return the features :attr:`Layout.features`, ``[rows]`` each; always finite."""
        question, index, layout = self.question, self.index, self.layout
        columns = {
            name: finite(self._tensor(name)[question, index]) for name in layout.per_candidate
        }
        columns |= {
            name: finite(self.tensors[name].reshape(-1))[question] for name in layout.per_question
        }
        weights = finite(self._tensor(WEIGHT))
        others = self.mask.copy()
        others[:, OWN] = False
        least = np.where(others, weights, np.inf).min(axis=1, initial=np.inf)
        least = np.where(others.any(axis=1), least, 0.0)
        own = columns[WEIGHT]
        columns[POSITION] = index.astype(np.float64)
        columns[IS_OWN] = (index == OWN).astype(np.float64)
        columns[WEIGHT_TO_OWN] = _log_ratio(own, weights[:, OWN][question])
        columns[WEIGHT_TO_LEAST] = _log_ratio(own, least[question])
        columns[CANDIDATE_COUNT] = self.counts[question].astype(np.float64)
        return columns

    def default_columns(self, columns: dict[str, F64], default: I64) -> dict[str, F64]:
        """Return the features :attr:`Layout.default_features`, ``[rows]`` each.

        :param columns: what :meth:`columns` returns.
        :param default: the row within its question that the stock heuristic chooses,
            ``[questions]``.
        """
        chosen = self.first + default
        marked = np.zeros(len(self.question))
        marked[chosen] = 1.0
        of_default = chosen[self.question]
        return {DEFAULT: marked} | {
            f"{name}{OF_DEFAULT}": columns[name][of_default]
            for name in (*self.layout.per_candidate, *DERIVED)
        }

    def _tensor(self, name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self.tensors[name].reshape(-1, CANDIDATES)
        return values


def finite(values: npt.NDArray[Any]) -> F64:
    """Return ``values`` as numbers that a policy can read.

    The compiler divides by the largest value of the question. Where that is infinite (a live range
    that cannot be spilled), infinity over infinity arrives as "not a number": it is 1, the largest
    value, and the others are 0.
    """
    result: F64 = values.astype(np.float64)
    result[np.isnan(result)] = 1.0
    return np.clip(result, -_LARGEST, _LARGEST, out=result)


def _log_ratio(values: F64, divisors: F64) -> F64:
    """Return log2 of the ratio, linear between powers of two: the same bits everywhere."""
    return np.clip(_log(values) - _log(divisors), -_LARGEST_LOG, _LARGEST_LOG)


def _log(values: F64) -> F64:
    mantissa, exponent = np.frexp(np.maximum(values, _LEAST_WEIGHT))
    result: F64 = (exponent - 1) + (2 * mantissa - 1)
    return result
