"""Never worse than stock: send modules of a program back to the stock compiler until none grew.

A module stays under the policy only where the linked program gains by it. What each module takes
of the program (``rewards.linked_size.shares``) proposes the modules that go back; links decide,
since modules share COMDAT functions. The result is a list of modules for an overrides file, so it
is made once, and the program's users pay nothing for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from nestor.compiler.objects import measure, source_file
from nestor.compiler.program_summary import module_id
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import Link, link, shares
from nestor.rollout.pool import Pool

_TRIALS = 16
"""Modules whose place is tried singly in the end; those that the shares say least about."""

ModuleKeys = frozenset[int]
"""Modules by the hash of their source file's name, as overrides know them."""


class GuardError(NestorError):
    """A program that cannot be linked, stock or under the policy."""


@dataclass(frozen=True)
class Objects:
    """A program's modules (and perhaps others) compiled both ways."""

    program: Program
    stock: Mapping[str, Path]
    policy: Mapping[LinkMode, Mapping[str, Path]]
    """By the mode that they are to be linked in: a policy may have been told of it."""


@dataclass(frozen=True)
class Guarded:
    """What the guard did to one program; sizes are loadable bytes by link mode."""

    program: str
    modules: int
    back: tuple[str, ...]
    """Modules that went back to the stock compiler."""
    stock: Mapping[LinkMode, int]
    policy: Mapping[LinkMode, int]
    guarded: Mapping[LinkMode, int]

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
    """Modules that the stock compiler keeps, so that no program is larger than stock."""

    keys: ModuleKeys
    names: Mapping[int, tuple[str, ...]]
    """The modules of each key."""
    programs: tuple[Guarded, ...]


def guard(
    pool: Pool,
    builds: Sequence[Objects],
    modes: Sequence[LinkMode] = ("gc", "no-gc", "icf"),
    progress: Progress = silent,
) -> Guard:
    """Choose the modules that go back, one list for all programs.

    With them, no program is larger than stock in any of ``modes``. Modules of different programs
    whose source files have the same name go back together.

    :raises GuardError: if a program cannot be linked.
    """
    return guard_all([_ObjectChoice(pool, build, modes) for build in builds], progress)


def guard_all(searches: Sequence["Choice"], progress: Progress = silent) -> Guard:
    """Choose the modules that go back, one list for all programs. See :func:`guard`."""
    keys: ModuleKeys = frozenset()
    for number, search in enumerate(searches):
        progress("Guarding programs", number, len(searches))
        keys |= search.choose(keys)
    # What one program sends back may make another grow; in the end all of it would be stock.
    while grown := [search for search in searches if search.cost(keys)[0]]:
        for search in grown:
            keys |= search.choose(keys)
    progress("Guarding programs", len(searches), len(searches))
    names: dict[int, tuple[str, ...]] = {}
    for search in searches:
        for name, key in search.keys.items():
            if key in keys:
                names[key] = tuple(sorted({*names.get(key, ()), name}))
    return Guard(keys, names, tuple(search.result(keys) for search in searches))


class Choice(ABC):
    """One program: links with some of its modules from the stock compiler."""

    trials = _TRIALS

    def __init__(self, program: Program, modes: Sequence[LinkMode], keys: Mapping[str, int]):
        """Prepare; ``keys`` are those of the modules that the policy changes."""
        self._program = program
        self._modes = tuple(modes)
        self._known: dict[ModuleKeys, Mapping[LinkMode, int]] = {}
        self.keys = keys
        self._all = frozenset(keys.values())

    @abstractmethod
    def measured(self, back: ModuleKeys) -> Mapping[LinkMode, int]:
        """Link and return the program's loadable bytes with ``back`` from the stock compiler.

        :raises GuardError: if it cannot be linked.
        """

    @property
    @abstractmethod
    def growths(self) -> Mapping[LinkMode, Mapping[int, float]]:
        """Bytes that each module's share of the program grows under the policy, by link mode."""

    def choose(self, fixed: ModuleKeys) -> ModuleKeys:
        """Return the modules of this program that go back, those of ``fixed`` among them."""
        fixed &= self._all
        grown = {key for key in self._all if self._growth(key) > 0}
        best = min(fixed, fixed | grown, key=self.cost)
        batch = 1
        while self.cost(best)[0]:
            sizes, stock = self.sizes(best), self.sizes(self._all)
            mode = max(self._modes, key=lambda m: sizes[m] - stock[m])
            left = sorted(self._all - best, key=lambda k: (-self.growths[mode][k], k))
            best |= frozenset(left[:batch])
            batch *= 2
        unsure = sorted(self._all - fixed, key=lambda key: (abs(self._growth(key)), key))
        for key in unsure[: self.trials]:
            best = min(best, best ^ {key}, key=self.cost)
        return min(best, self._all, key=self.cost)

    def cost(self, back: ModuleKeys) -> tuple[int, int]:
        """Return by how many bytes the modes are above stock, and all their bytes."""
        sizes, stock = self.sizes(back), self.sizes(self._all)
        excess = sum(max(0, sizes[mode] - stock[mode]) for mode in self._modes)
        return excess, sum(sizes.values())

    def sizes(self, back: ModuleKeys) -> Mapping[LinkMode, int]:
        """Return the program's loadable bytes with ``back`` from the stock compiler."""
        own = back & self._all
        if own not in self._known:
            self._known[own] = self.measured(own)
        return self._known[own]

    def result(self, back: ModuleKeys) -> Guarded:
        """Return what became of the program."""
        return Guarded(
            program=self._program.name,
            modules=len(self._program.modules),
            back=tuple(name for name, key in self.keys.items() if key in back),
            stock=self.sizes(self._all),
            policy=self.sizes(frozenset()),
            guarded=self.sizes(back),
        )

    def _growth(self, key: int) -> float:
        return sum(growth[key] for growth in self.growths.values())


class _ObjectChoice(Choice):
    """A program of objects that were compiled both ways."""

    def __init__(self, pool: Pool, build: Objects, modes: Sequence[LinkMode]):
        self._pool = pool
        self._build = build
        keys = {
            name: module_id(source_file(build.stock[name]))
            for name in build.program.modules
            if any(
                build.policy[mode][name].read_bytes() != build.stock[name].read_bytes()
                for mode in modes
            )
        }
        super().__init__(build.program, modes, keys)

    def measured(self, back: ModuleKeys) -> Mapping[LinkMode, int]:
        links = self._pool.map(lambda mode: self._link(mode, back), self._modes)
        return {
            mode: linked.measure.loadable
            for mode, linked in zip(self._modes, links, strict=True)
            if linked.measure is not None
        }

    @cached_property
    def growths(self) -> Mapping[LinkMode, Mapping[int, float]]:
        found: dict[LinkMode, dict[int, float]] = {}
        measured = cache(measure)  # most objects are the same in every mode
        for mode in self._modes:
            found[mode] = dict.fromkeys(self._all, 0.0)
            for back, sign in ((frozenset[int](), 1), (self._all, -1)):
                objects = self._objects(mode, back)
                sizes = {name: measured(path) for name, path in objects.items()}
                linked = self._link(mode, back, want_kept=True)
                weights = shares(self._build.program, linked, sizes)
                for name, key in self.keys.items():
                    found[mode][key] += sign * weights.score(name, sizes[name])
        return found

    def _objects(self, mode: LinkMode, back: ModuleKeys) -> Mapping[str, Path]:
        stock, policy = self._build.stock, self._build.policy[mode]
        return {
            name: stock[name] if self.keys.get(name) in back else policy[name]
            for name in self._build.program.modules
        }

    def _link(self, mode: LinkMode, back: ModuleKeys, *, want_kept: bool = False) -> Link:
        program = self._build.program
        linked = link(
            self._pool.plugin.toolchain,
            self._pool.corpus,
            program,
            self._objects(mode, back),
            mode=mode,
            want_kept=want_kept,
            limits=self._pool.limits,
        )
        if linked.measure is None:
            raise GuardError(f"{program.name}: {linked.failure}.")
        return linked
