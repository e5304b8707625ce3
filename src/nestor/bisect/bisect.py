"""From a program that fails under a policy to the decisions that make it fail.

First by modules: objects compiled under the policy and under the default are mixed, which takes a
link for each test and no compile. Then by the decisions that the policy took otherwise than the
default in the modules that were found: a few of them are replayed under the default, which compiles
one module or two for each test.

What is found is *a* minimal cause: without any one of its decisions the rest of it does not make
the program fail. There may be others, so the search goes on until the program under the policy,
with all decisions found left to the default, is good.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nestor.bisect.check import BisectError, Verdict
from nestor.bisect.compiled import CompiledModules, Modules
from nestor.bisect.minimal import minimal_failing
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import Deviation, Key, OverrideFormat, Overrides
from nestor.problem.problem import Problem
from nestor.progress import Progress, silent

_MOST_CAUSES: Final = 20
"""A program with more causes than that is better left to the default."""


class Tester(Protocol):
    """Tells good programs from bad ones."""

    @property
    def tests(self) -> int:
        """How many tests were run."""

    def verdict(self, modules: Modules, *, again: bool = False) -> Verdict:
        """Return what the program with these modules is.

        :param again: test it also if it has been tested before.
        """


@dataclass(frozen=True)
class Cost:
    """What a search has taken."""

    tests: int = 0
    """Runs of the command, and programs that did not link."""
    compiles: int = 0
    """Of single modules, besides the two of the whole program at both ends."""
    cpu_seconds: float = 0.0
    """Of all compiles."""


@dataclass(frozen=True)
class Cause:
    """Decisions that together make the program fail."""

    modules: tuple[str, ...]
    decisions: tuple[Deviation, ...]


@dataclass(frozen=True)
class Bisected:
    """What a search came to."""

    program: str
    policy: NamedPolicy
    causes: tuple[Cause, ...]
    deviations: int
    """Decisions of the program that the policy took otherwise than the default."""
    modules: int
    changed: int
    """Modules, and those whose objects the policy changes."""
    cost: Cost

    @property
    def overrides(self) -> dict[Key, object]:
        """With these the program under the policy is good."""
        return {k: v for c in self.causes for d in c.decisions for k, v in d.revert.items()}

    def text(self, problem: Problem) -> str:
        """Return the overrides file."""
        comments = {k: d.about for c in self.causes for d in c.decisions for k in d.revert}
        title = (
            f"program {self.program}\npolicy {self.policy.name} {self.policy.digest}\n"
            "With these decisions left to the default the program passes its test."
        )
        return problem.overrides().to_text(self.overrides, comments, title)


def bisect(
    modules: CompiledModules,
    program: Program,
    policy: NamedPolicy,
    tester: Tester,
    *,
    repeat: bool = True,
    progress: Progress = silent,
) -> Bisected:
    """Find the decisions of ``policy`` that make ``program`` fail.

    :param modules: compiles what is needed.
    :param repeat: test twice at both ends, to find out whether the test says the same.
    :raises BisectError: if the program does not fail, fails without the policy too, or the test
        does not say the same twice.
    :raises BuildError: if a module cannot be compiled.
    """
    return _Search(modules, program, policy, tester, progress).run(repeat)


_Place = tuple[str, Deviation]
"""Decisions and the module that they are taken in."""


class _Search:
    """One search; modules are compiled when they are needed."""

    def __init__(
        self,
        modules: CompiledModules,
        program: Program,
        policy: NamedPolicy,
        tester: Tester,
        progress: Progress,
    ) -> None:
        self._format: OverrideFormat = modules.pool.problem.overrides()
        self._toolchain = modules.pool.plugin.toolchain
        self._program = program
        self._policy = policy
        self._tester = tester
        self._modules = modules
        self._progress = progress
        self._reverted: dict[Key, object] = {}
        self._known: dict[tuple[str, int], Sequence[Deviation]] = {}

    def run(self, repeat: bool) -> Bisected:
        good = self._whole(DEFAULT)
        bad = self._whole(self._policy, log=True)
        ends = self._modules.compiles
        self._check_ends(good, bad, repeat)
        every = [d for name in self._program.modules for d in self._deviations(bad, name)]
        changed = _differing(good, bad)
        causes: list[Cause] = []
        while self._tester.verdict(bad) is Verdict.BAD:
            causes.append(self._cause(good, bad))
            new = {k: v for d in causes[-1].decisions for k, v in d.revert.items()}
            if new.keys() <= self._reverted.keys() or len(causes) > _MOST_CAUSES:
                raise BisectError(
                    "The program fails whatever single decisions of the policy are left to the"
                    f" default ({len(causes)} causes were found): leave its modules to stock with"
                    " 'module … stock' lines."
                )
            self._reverted |= new
            bad = self._again(bad, new)
        if self._tester.verdict(bad) is Verdict.UNRESOLVED:
            raise BisectError(
                "With what was found left to the default, the command cannot tell whether the"
                " program is good."
            )
        return Bisected(
            self._program.name, self._policy, tuple(causes), len(every),
            len(self._program.modules), len(changed),
            Cost(self._tester.tests, self._modules.compiles - ends, self._modules.cpu_seconds),
        )  # fmt: skip

    def _check_ends(self, good: Modules, bad: Modules, repeat: bool) -> None:
        """Refuse a search that cannot find anything."""
        for side, name, wanted in (
            (good, "the default", Verdict.GOOD),
            (bad, f"'{self._policy.name}'", Verdict.BAD),
        ):
            found = self._tester.verdict(side)
            if found is not wanted:
                raise BisectError(
                    f"Under {name} the program is {found.value}, and not {wanted.value}: no"
                    " decision of the policy makes the difference that the command looks for."
                )
            if repeat and self._tester.verdict(side, again=True) is not found:
                raise BisectError(
                    f"The command says now this, now that about the program under {name}; make it"
                    " repeat the run, say, and fail if one of several fails."
                )

    def _cause(self, good: Modules, bad: Modules) -> Cause:
        def mixed(names: Sequence[str]) -> bool:
            mixture = {**good, **{name: bad[name] for name in names}}
            return self._is_bad(mixture, "Testing modules")

        modules = minimal_failing(_differing(good, bad), mixed)
        places = [(name, d) for name in modules for d in self._deviations(bad, name)]
        found = minimal_failing(places, self._test_of(good, modules, places))
        return Cause(tuple(modules), tuple(deviation for _, deviation in found))

    def _test_of(
        self, good: Modules, modules: Sequence[str], places: Sequence[_Place]
    ) -> Callable[[Sequence[_Place]], bool]:
        """Return how to find out whether some of the decisions make the program fail.

        They are replayed under the default; or, if the failure does not come back in this way, all
        others are reverted under the policy, whose questions may then be others.
        """

        def replayed(chosen: Sequence[_Place]) -> bool:
            overrides = {
                name: _joined(d.replay for n, d in chosen if n == name) for name in modules
            }
            mixture = {**good, **self._modules.compile(DEFAULT, overrides)}
            return self._is_bad(mixture, "Testing decisions")

        def left(chosen: Sequence[_Place]) -> bool:
            taken = {id(deviation) for _, deviation in chosen}
            others = {
                name: self._reverted
                | _joined(d.revert for n, d in places if n == name and id(d) not in taken)
                for name in modules
            }
            mixture = {**good, **self._modules.compile(self._policy, others)}
            return self._is_bad(mixture, "Testing decisions")

        if replayed(places):
            return replayed
        if left(places) and not left(()):
            return left
        raise BisectError(
            f"The failure is in {', '.join(modules)}, and overrides neither bring it back nor take"
            " it away: leave these modules to stock with 'module … stock' lines."
        )

    def _again(self, bad: Modules, new: Overrides) -> Modules:
        """Return the modules under the policy, those compiled again that ``new`` answers in."""
        questions = {
            name: self._format.question_keys([done.trajectory])
            for name, done in bad.items()
            if done.trajectory is not None
        }
        changed = {
            name: dict(self._reverted)
            for name, keys in questions.items()
            if any(keys.matched_by(key) for key in new)
        }
        return {**bad, **self._modules.compile(self._policy, changed, self._progress, log=True)}

    def _whole(self, policy: NamedPolicy, *, log: bool = False) -> Modules:
        own: dict[str, Overrides] = {key: {} for key in self._program.modules}
        return self._modules.compile(policy, own, self._progress, log=log)

    def _deviations(self, modules: Modules, name: str) -> Sequence[Deviation]:
        """Return what deviates in a module; names are made readable once for each compile."""
        trajectory = modules[name].trajectory
        if trajectory is None:
            return []
        key = (
            name,
            id(trajectory),
        )  # compiles, and so their trajectories, live as long as the search
        if key not in self._known:
            self._known[key] = self._format.deviations(self._toolchain, trajectory)
        return self._known[key]

    def _is_bad(self, modules: Modules, stage: str) -> bool:
        tests = self._tester.tests
        self._progress(stage, tests, tests + 1)
        return self._tester.verdict(modules) is Verdict.BAD


def _joined(parts: Iterable[Overrides]) -> dict[Key, object]:
    return {key: answer for part in parts for key, answer in part.items()}


def _differing(good: Modules, bad: Modules) -> list[str]:
    return [name for name in good if good[name].object != bad[name].object]
