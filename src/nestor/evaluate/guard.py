"""Never worse than stock: leave units of a program to the stock heuristic until nothing grew.

A unit stays under the policy only where the program gains by it. What each unit takes of the
program's score proposes the units that go back; builds decide, since units share functions. The
result is a list of units for an overrides file, so it is made once, and the program's users pay
nothing for it. Under full LTO the program is the only unit: it goes back as a whole, or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from nestor.build.build import Build, BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import Key, Overrides
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent

_TRIALS: Final = 16
"""Units whose place is tried singly in the end; those of whose growth the scores say least."""

_WHOLE_TRIALS: Final = 4
"""The same where every trial means building the whole program."""

Keys = frozenset[Key]
"""Units, by the key of the override that leaves one to the stock heuristic."""


class GuardError(NestorError):
    """A program that cannot be built, stock or under the policy."""


@dataclass(frozen=True)
class Guarded:
    """What the guard did to one program, with its score by mode."""

    program: str
    modules: int
    back: tuple[str, ...]
    """Modules that went back to the stock heuristic."""
    stock: Mapping[str, float]
    policy: Mapping[str, float]
    guarded: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the program as plain data (docs/reference/formats.md)."""
        return {
            "program": self.program,
            "modules": self.modules,
            "back": list(self.back),
            "sizes": {
                mode: {
                    "stock": self.stock[mode],
                    "policy": self.policy[mode],
                    "guarded": self.guarded[mode],
                }
                for mode in self.stock
            },
        }


@dataclass(frozen=True)
class Guard:
    """Units that are left to the stock heuristic, so that no program is worse than stock."""

    keys: Keys
    names: Mapping[Key, tuple[str, ...]]
    """The modules of each key."""
    programs: tuple[Guarded, ...]


def guard(
    pool: Pool,
    build: Build,
    programs: Sequence[Program],
    policy: NamedPolicy,
    modes: Sequence[str] = (),
    *,
    summaries: Mapping[tuple[str, str], str] | None = None,
    overrides: Overrides | None = None,
    progress: Progress = silent,
) -> Guard:
    """Choose the units that go back, one list for all programs.

    With them, no program's score is above stock's in any of ``modes``. Units of different programs
    with one key (modules whose source files have the same name) go back together.

    :param modes: modes of the build; none is all of them.
    :param summaries: texts by program and mode, for a policy that reads them.
    :param overrides: answers that stand above the policy's in every build.
    :raises GuardError: if a program cannot be built.
    :raises ProblemError: if the problem has no overrides.
    """
    found = [
        _Choice(
            pool, build, program, policy, modes or build.modes, summaries or {}, overrides or {}
        )
        for program in programs
    ]
    try:
        return _guard(found, progress)
    except BuildError as error:
        raise GuardError(str(error)) from None
    finally:
        for choice in found:
            choice.close()


def _guard(choices: Sequence["_Choice"], progress: Progress) -> Guard:
    keys: Keys = frozenset()
    for number, choice in enumerate(choices):
        progress("Guarding programs", number, len(choices))
        keys |= choice.choose(keys)
    # What one program sends back may make another grow; in the end all of it would be stock.
    while grown := [choice for choice in choices if choice.cost(keys)[0]]:
        for choice in grown:
            keys |= choice.choose(keys)
    progress("Guarding programs", len(choices), len(choices))
    names: dict[Key, tuple[str, ...]] = {}
    for choice in choices:
        for name, key in choice.keys.items():
            if key in keys:
                names[key] = tuple(sorted({*names.get(key, ()), name}))
    return Guard(keys, names, tuple(choice.result(keys) for choice in choices))


class _Choice:
    """One program: builds with some of its units left to the stock heuristic."""

    def __init__(
        self,
        pool: Pool,
        build: Build,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
        summaries: Mapping[tuple[str, str], str],
        overrides: Overrides,
    ):
        self._program = program
        self._modes = tuple(modes)
        self._overrides = overrides
        self._format = pool.problem.overrides()
        self._trials = _WHOLE_TRIALS if build.whole else _TRIALS
        self._stock_builder = build.incremental(pool, program, DEFAULT, self._modes)
        # A policy may decide otherwise in a mode of which it has another summary.
        by_summary: dict[str | None, list[str]] = {}
        for mode in self._modes:
            by_summary.setdefault(summaries.get((program.name, mode)), []).append(mode)
        self._builders: list[ProgramBuilder] = [
            build.incremental(pool, program, policy, own, summary)
            for summary, own in by_summary.items()
        ]
        self._sizes: dict[Keys, Mapping[str, float]] = {}

    def close(self) -> None:
        """Forget what was built."""
        for builder in (self._stock_builder, *self._builders):
            builder.close()

    @cached_property
    def _stock(self) -> ProgramBuild:
        return self._stock_builder.build({})

    @cached_property
    def _policy(self) -> list[ProgramBuild]:
        return [builder.build(self._overrides) for builder in self._builders]

    @cached_property
    def _units(self) -> Mapping[str, Key]:
        """The key of every back end that the policy changes."""
        stock = self._stock
        found = {}
        for build in self._policy:
            for unit, trajectory in build.trajectories.items():
                same = unit in build.objects and build.objects[unit] == stock.objects.get(unit)
                if not same:
                    found[unit] = self._format.unit(trajectory)
        return {unit: found[unit] for unit in stock.trajectories if unit in found}

    @cached_property
    def keys(self) -> Mapping[str, Key]:
        """The key of every module that the policy changes."""
        back_ends = {
            module: unit for unit, modules in self._stock.modules.items() for module in modules
        }
        return {
            name: self._units[back_ends[name]]
            for name in self._program.modules
            if back_ends.get(name) in self._units
        }

    @cached_property
    def _all(self) -> Keys:
        return frozenset(self.keys.values())

    @cached_property
    def _growths(self) -> Mapping[str, Mapping[Key, float]]:
        """What each unit's part of the score grows under the policy, by mode."""
        found: dict[str, dict[Key, float]] = {}
        for build in self._policy:
            for mode in build.columns:
                before, after = self._stock.scored(mode), build.scored(mode)
                found[mode] = dict.fromkeys(self._all, 0.0)
                for unit, key in self._units.items():
                    found[mode][key] += after.get(unit, 0.0) - before.get(unit, 0.0)
        return found

    def choose(self, fixed: Keys) -> Keys:
        """Return the units of this program that go back, those of ``fixed`` among them."""
        fixed &= self._all
        grown = {key for key in self._all if self._growth(key) > 0}
        best = min(fixed, fixed | grown, key=self.cost)
        batch = 1
        while self.cost(best)[0]:
            sizes, stock = self.sizes(best), self.sizes(self._all)
            mode = max(self._modes, key=lambda m: sizes[m] - stock[m])
            left = sorted(self._all - best, key=lambda k: (-self._growths[mode][k], k))
            best |= frozenset(left[:batch])
            batch *= 2
        unsure = sorted(self._all - fixed, key=lambda key: (abs(self._growth(key)), key))
        for key in unsure[: self._trials]:
            best = min(best, best ^ {key}, key=self.cost)
        return min(best, self._all, key=self.cost)

    def cost(self, back: Keys) -> tuple[float, float]:
        """Return by how much the scores are above stock's, and all scores, over the modes."""
        sizes, stock = self.sizes(back), self.sizes(self._all)
        excess = sum(max(0, sizes[mode] - stock[mode]) for mode in self._modes)
        return excess, sum(sizes.values())

    def sizes(self, back: Keys) -> Mapping[str, float]:
        """Return the program's score by mode with ``back`` left to the stock heuristic."""
        own = back & self._all
        if own not in self._sizes:
            self._sizes[own] = self._built(own)
        return self._sizes[own]

    def _built(self, back: Keys) -> Mapping[str, float]:
        if back == self._all:
            return self._stock.scores()
        overrides = {**self._overrides, **dict.fromkeys(back, self._format.stock)}
        found: dict[str, float] = {}
        for builder in self._builders:
            found |= builder.build(overrides).scores()
        return {mode: found[mode] for mode in self._modes}

    def result(self, back: Keys) -> Guarded:
        """Return what became of the program."""
        return Guarded(
            program=self._program.name,
            modules=len(self._program.modules),
            back=tuple(name for name, key in self.keys.items() if key in back),
            stock=self.sizes(self._all),
            policy=self.sizes(frozenset()),
            guarded=self.sizes(back),
        )

    def _growth(self, key: Key) -> float:
        return sum(growth[key] for growth in self._growths.values())
