"""What a compile asked, which overrides answer that, and what the lines are about."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nestor.compiler.demangle import demangle
from nestor.compiler.toolchain import Toolchain
from nestor.problem.override_text import TextOverrides
from nestor.problem.overrides import Deviation, QuestionKeys
from nestor.problem.trajectory import Trajectory
from nestor.regalloc.credit import INDEX, QUESTION, functions_of
from nestor.regalloc.overrides import STOCK, TEXT, Answer, Key, Kind, Overrides

Index = Mapping[int, Mapping[Key, Answer]]
"""Overrides by module or function."""


@dataclass(frozen=True)
class AllocatedFunctions:
    """The modules and functions of some compiles, and the questions of one kind about them."""

    modules: frozenset[int]
    functions: frozenset[int]
    kind: Kind
    """Of the questions that the trajectories hold."""
    questions: frozenset[tuple[int, int]]
    """Function and number."""

    def among(self, index: Index) -> Mapping[Key, Answer]:
        """Return the overrides of ``index`` about these modules and functions.

        Whether a number is asked depends on the answers before it, so the lines of a function
        count together.
        """
        own = (self.modules | self.functions) & index.keys()
        return {
            key: answer
            for number in own
            for key, answer in index[number].items()
            if number in (self.modules if key.kind == "module" else self.functions)
        }

    def answered_alike(self, index: Index) -> bool:
        """Return False: only equal overrides are taken to give equal compiles."""
        return False

    def matched_by(self, key: Key) -> bool:
        """Tell whether ``key`` is one of these modules, functions or questions.

        Of the other problem's questions only the function is compared.
        """
        if key.kind == "module":
            return key.number in self.modules
        if key.kind == self.kind:
            return (key.number, key.question) in self.questions
        return key.number in self.functions


@dataclass(frozen=True)
class AllocationOverrides(TextOverrides):
    """The overrides of register allocation (:class:`nestor.problem.overrides.OverrideFormat`).

    One file may hold those of both problems.
    """

    text = TEXT
    kind: Kind
    """Of the problem's own questions."""
    stock: str = STOCK

    def describe(
        self, toolchain: Toolchain, trajectories: Iterable[Trajectory]
    ) -> Mapping[Key, str]:
        """Return the functions and questions of these compiles by the functions' names."""
        found: dict[Key, str] = {}
        for trajectory in trajectories:
            names = readable_names(toolchain, trajectory.names)
            found |= {Key("function", number): name for number, name in names.items()}
            for number, question in _questions_of(trajectory):
                if number in names:
                    found[Key(self.kind, number, question)] = names[number]
        return found

    def deviations(self, toolchain: Toolchain, trajectory: Trajectory) -> Sequence[Deviation]:
        """Return the functions of a module with answers that left the default.

        A function is allocated as a whole: which question a number is follows from the answers
        before it. The answers replayed serve every module with a function of the name.
        """
        names = readable_names(toolchain, trajectory.names)
        left = trajectory.answer != trajectory.default
        # Lines name a candidate as the compiler does, which is not the row that a policy picks.
        is_candidate = INDEX in (trajectory.decisions.dtype.names or ())
        every = trajectory.decisions[INDEX] if is_candidate else trajectory.answer
        answers = every[left].tolist()
        replays: dict[int, dict[Key, Answer]] = defaultdict(dict)
        pairs = [pair for pair, other in zip(_questions_of(trajectory), left, strict=True) if other]
        for (function, question), answer in zip(pairs, answers, strict=True):
            replays[function][Key(self.kind, function, question)] = answer
        return [
            Deviation(replay, {Key("function", function): STOCK}, names.get(function, "?"))
            for function, replay in replays.items()
        ]

    def index(self, overrides: Overrides) -> Index:
        """Return ``overrides`` by the number of their module or function."""
        found: dict[int, dict[Key, Answer]] = defaultdict(dict)
        for key, answer in overrides.items():
            found[key.number][key] = answer
        return found

    def question_keys(self, trajectories: Iterable[Trajectory]) -> QuestionKeys:
        """Return what the compiles with these trajectories, which have names, were about."""
        own = list(trajectories)
        functions = frozenset[int]().union(
            *(t.names.keys() for t in own), *(functions_of(t)[0].tolist() for t in own)
        )
        return AllocatedFunctions(
            modules=frozenset(trajectory.facts["module"] for trajectory in own),
            functions=functions,
            kind=self.kind,
            questions=frozenset(pair for t in own for pair in _questions_of(t)),
        )

    def unit(self, trajectory: Trajectory) -> Key:
        """Return the key of the module with this trajectory."""
        return Key("module", trajectory.facts["module"])


def readable_names(toolchain: Toolchain, names: Mapping[int, str]) -> dict[int, str]:
    """Return functions' names as people write them, by id."""
    written = demangle(toolchain, names.values())
    return {number: written.get(name, name) for number, name in names.items()}


def _questions_of(trajectory: Trajectory) -> Iterable[tuple[int, int]]:
    functions, place = functions_of(trajectory)
    numbers: Any = trajectory.decisions[QUESTION].tolist()
    return zip(functions[place].tolist(), numbers, strict=True)
