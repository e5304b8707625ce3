"""Answer the compiler's questions by a policy, and keep a record of them."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import Channel
from nestor.policy.rule import PICK
from nestor.problem.decide import decide, feature_columns
from nestor.problem.rollout import Request
from nestor.problem.trajectory import F64, LEFT_OUT, Trajectory
from nestor.problems.regalloc_eviction.credit import FUNCTION, function_id
from nestor.problems.regalloc_eviction.default import default_answer
from nestor.problems.regalloc_eviction.question import LLVM_22, Layout, Question

DEFAULT: Final = "eviction_default"
"""The column with the row that the default heuristic would choose; as a feature of a candidate, 1
for that row."""

_DECISIONS: Final = np.dtype(
    [
        (DEFAULT, "<i8"),
        ("answer", "<i8"),
        ("logit", "<f8"),
        ("log_probability", "<f8"),
        ("index", "<i8"),
        ("default_index", "<i8"),
        ("rows", "<i8"),
        (FUNCTION, "<i8"),
    ]
)
"""Columns of a decision: rows count from 0 within the question, ``index`` is the compiler's."""


@dataclass
class Recording:
    """What one compile asked, and how it was answered."""

    features: tuple[str, ...] = (*LLVM_22.features, DEFAULT)
    decisions: list[tuple[Any, ...]] = field(default_factory=list)
    matrices: list[F64] = field(default_factory=list)
    """The features of each question's rows, ``[rows, features]``."""
    functions: list[str] = field(default_factory=list)
    """The function of each question."""
    want_names: bool = False

    def trajectory(self, only: Collection[str] | None = None) -> Trajectory:
        """Return the questions as a trajectory.

        :param only: leave out the questions of all other functions, and count them in
            its facts.
        """
        wanted = None if only is None else set(only)
        kept = [i for i, f in enumerate(self.functions) if wanted is None or f in wanted]
        counts = [len(self.matrices[i]) for i in kept]
        matrix = np.concatenate(
            [np.empty((0, len(self.features))), *(self.matrices[i] for i in kept)]
        )
        candidates = np.empty(len(matrix), dtype=[(name, "<f8") for name in self.features])
        for column, name in enumerate(self.features):
            candidates[name] = matrix[:, column]
        names = {self.functions[i] for i in kept} if self.want_names else set()
        return Trajectory(
            features=self.features,
            decisions=np.array([self.decisions[i] for i in kept], dtype=_DECISIONS),
            default_column=DEFAULT,
            candidates=candidates,
            question=np.repeat(np.arange(len(kept)), counts),
            names={function_id(name): name for name in sorted(names)},
            facts={LEFT_OUT: len(self.functions) - len(kept)},
        )


class Player:
    """Answers the questions of one compile as a request says; the default's answers without a
    policy.

    Sampling draws a number for each question from the seed, the function's name and the question's
    number within the function (``by_group``: only the name), so a draw does not depend on what
    happened in other functions.
    """

    def __init__(self, request: Request) -> None:
        """Prepare to answer for ``request``, whose policy is not None."""
        assert request.policy is not None
        self.recording = Recording(want_names=request.names)
        self._request = request
        self._policy = request.policy.policy
        self._layout: Layout | None = None
        self._columns: list[int] = []
        self._numbers: dict[str, int] = {}

    def answer(self, channel: Channel, tensors: npt.NDArray[Any]) -> int:
        """Return the index of the candidate that the question is answered with.

        :raises NestorError: if the compiler lacks a feature of the policy.
        """
        if self._layout is None:
            self._layout = Layout.of(channel.features)
            self.recording.features = (*self._layout.features, DEFAULT)
            if self._policy is not None:
                offered = self.recording.features
                self._columns = feature_columns(self._policy, PICK.name, offered)
        question = Question(self._layout, tensors)
        default_index = default_answer(question)
        default = int(np.searchsorted(question.allowed, default_index))
        rows = len(question.allowed)
        matrix = np.column_stack([question.matrix, np.arange(rows) == default])
        row, logit, log_probability = self._decide(matrix, default, channel.context)
        index = int(question.allowed[row])
        recording = self.recording
        recording.matrices.append(matrix)
        recording.functions.append(channel.context)
        recording.decisions.append(
            (
                default, row, logit, log_probability,
                index, default_index, rows, function_id(channel.context),
            )
        )  # fmt: skip
        return index

    def _decide(self, matrix: F64, default: int, function: str) -> tuple[int, float, float]:
        """Return the row, its logit and the logarithm of its probability."""
        number = self._numbers.get(function, 0)
        self._numbers[function] = number + 1
        if self._policy is None:
            return default, 0.0, 0.0
        decided = decide(
            self._request,
            matrix[:, self._columns],
            np.zeros(len(matrix), dtype=np.int64),
            np.array([default]),
            [function if self._request.by_group else f"{function}\0{number}"],
        )
        return int(decided.answer[0]), float(decided.logit[0]), float(decided.log_probability[0])
