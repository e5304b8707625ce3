"""The identity gate on a whole corpus: ways to compile that must give the same bytes.

Units are compiled in the ways that the problem names (``Problem.ways``); programs are built by one
of its builds, stock and through the plugin, with and without the log. Ways that count their
decisions must also have been asked equally often. Failures are results: counted, named and never
dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

from nestor.build.build import Build, Built, Job
from nestor.compiler.invocation import compile_command
from nestor.corpus.model import Corpus, CorpusError, Module, Program, Split
from nestor.errors import NestorError
from nestor.evaluate.provenance import digests
from nestor.evaluate.result import Failure
from nestor.files import sha256_of
from nestor.policy.names import NamedPolicy
from nestor.problem.identity import Circumstances
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.rollout.gate import has_ways
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Difference:
    """A comparison that did not hold."""

    module: str
    """A unit, or a program and how it was built."""
    way: str
    """How it was compiled."""
    reference: str
    """What it was compared with."""
    what: str
    """In what they differ, in a few words."""


@dataclass(frozen=True)
class UnitIdentity:
    """All comparisons of one unit or program."""

    module: str
    comparisons: int
    """That were due; those that a failure prevented are among them."""
    identical: int
    """That were made and held."""
    decisions: int
    """How often the compiler asked, by the first way that counts."""
    differing: tuple[Difference, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class CorpusIdentity:
    """The result of the gate on a corpus."""

    policy: str
    modules: tuple[UnitIdentity, ...]
    """In the order of the corpus."""
    hashes: Mapping[str, str]

    @property
    def comparisons(self) -> int:
        """Comparisons that were due."""
        return sum(module.comparisons for module in self.modules)

    @property
    def identical(self) -> int:
        """Comparisons that were made and held."""
        return sum(module.identical for module in self.modules)

    @property
    def decisions(self) -> int:
        """How often the compiler asked in one compile of all units."""
        return sum(module.decisions for module in self.modules)

    @property
    def differing(self) -> tuple[Difference, ...]:
        """What did not hold."""
        return tuple(difference for module in self.modules for difference in module.differing)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What could not be compiled."""
        return tuple(failure for module in self.modules for failure in module.failures)

    @property
    def holds(self) -> bool:
        """There were comparisons, all were made and all held."""
        return 0 < self.comparisons == self.identical

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "policy": self.policy,
            "modules": len(self.modules),
            "comparisons": self.comparisons,
            "identical": self.identical,
            "differing": [asdict(difference) for difference in self.differing],
            "failures": [asdict(failure) for failure in self.failures],
            "decisions": self.decisions,
            "hashes": dict(self.hashes),
        }


@dataclass(frozen=True)
class _Output:
    """What a way left behind."""

    digest: str
    """SHA-256 of the object or program."""
    decisions: int | None
    """None where they are not counted."""


def select_modules(corpus: Corpus, split: Split | Literal["all"]) -> tuple[Module, ...]:
    """Return the modules of ``split``.

    :raises CorpusError: if there are none.
    """
    modules = corpus.modules if split == "all" else corpus.modules_of(split)
    if not modules:
        raise CorpusError(
            f"The corpus {corpus.root} has no modules in the split {split}: take another --split."
        )
    return modules


def check_units(
    pool: Pool, modules: Sequence[Module], policy: NamedPolicy, progress: Progress = silent
) -> CorpusIdentity:
    """Compile ``modules`` in every way of the problem and compare, several modules at a time.

    :param policy: the default heuristic compares the ways to follow it with stock; any other
        policy compares the ways to follow that with each other.
    :raises NestorError: if the problem has fewer than two ways.
    """
    if not has_ways(pool.problem, pool.plugin, policy):
        raise NestorError(f"{pool.problem.name} has no ways to compile that must agree.")
    checked = pool.map(
        lambda module: _check_unit(pool, module, policy),
        modules,
        progress,
        f"Comparing objects ({policy.name})",
    )
    return CorpusIdentity(policy.name, tuple(checked), digests(pool, policy))


def check_programs(
    pool: Pool,
    builds: Sequence[Build],
    programs: Sequence[Program],
    policy: NamedPolicy,
    progress: Progress = silent,
) -> CorpusIdentity:
    """Build ``programs`` in all ways that must agree; each program and build is one entry."""
    checked: dict[tuple[str, str], UnitIdentity] = {}
    for build in builds:
        jobs: list[tuple[str, Job]] = []
        for program in programs:
            used = Job(program, build.modes[0], policy)
            ways = {"plugin": used, "plugin with the log": replace(used, log=True)}
            if policy.policy is None:
                ways = {"stock": Job(program, build.modes[0]), **ways}
            jobs += list(ways.items())
        done = build.run(pool, [job for _, job in jobs], progress)
        by_program: dict[str, dict[str, Built]] = {}
        for (way, job), built in zip(jobs, done, strict=True):
            by_program.setdefault(job.program.name, {})[way] = built
        for name, built_ways in by_program.items():
            checked[name, build.name] = _check_program(f"{name} ({build.name})", build, built_ways)
    order = product([program.name for program in programs], [build.name for build in builds])
    found = tuple(checked[name, build] for name, build in dict.fromkeys(order))
    return CorpusIdentity(policy.name, found, digests(pool, policy))


def _check_unit(pool: Pool, module: Module, policy: NamedPolicy) -> UnitIdentity:
    outputs: dict[str, _Output] = {}
    failures: list[Failure] = []
    use = Circumstances(pool.limits, pool.place.cancelled)
    with temporary_folder("identity") as text:
        ways = pool.problem.ways(pool.plugin, policy, Path(text))
        bitcode = pool.corpus.bitcode(module)
        *command, _, _ = compile_command(
            pool.plugin.toolchain, module.options, bitcode, Path(text) / "out"
        )
        for number, way in enumerate(ways):
            out = Path(text) / f"{number}.o"
            try:
                decisions = way.compile(command, out, use)
                outputs[way.name] = _Output(sha256_of(out), decisions)
            except (NestorError, OSError) as error:
                failures.append(Failure(module.name, way.name, str(error)))
    counting = [way.name for way in ways if way.counts]
    names = [way.name for way in ways]
    return _judge(module.name, names, counting, "the object", outputs, failures)


def _check_program(name: str, build: Build, ways: Mapping[str, Built]) -> UnitIdentity:
    outputs: dict[str, _Output] = {}
    failures: list[Failure] = []
    for way, built in ways.items():
        # What a build does with what was compiled, such as running it, is not compared.
        digests = [done.digest for done in built.compiles]
        if None in digests:
            reason = next((c.failure for c in built.compiles if c.failure), built.failure)
            failures.append(Failure(name, way, reason or "a unit was not compiled"))
            continue
        decisions = sum(len(log) for _, log in built.trajectories)
        outputs[way] = _Output(" ".join(map(str, digests)), decisions)
    counting = [way for way, built in ways.items() if built.job.log]
    what = "the program" if build.whole else "an object"
    return _judge(name, list(ways), counting, what, outputs, failures)


def _judge(
    module: str,
    ways: Sequence[str],
    counting: Sequence[str],
    what: str,
    outputs: Mapping[str, _Output],
    failures: Sequence[Failure],
) -> UnitIdentity:
    """Compare what the ways left behind with the first, and counts with the first count.

    :param counting: those ways that count, were they to succeed: what is due must not depend on
        what failed.
    :param what: the words for what differs.
    """
    first, *others = ways
    counter, counted = (counting[0], counting[1:]) if counting else ("", ())
    differing = [
        Difference(module, name, first, what)
        for name in others
        if first in outputs and name in outputs and outputs[name].digest != outputs[first].digest
    ]
    both = [name for name in counted if counter in outputs and name in outputs]
    differing += [
        Difference(
            module,
            name,
            counter,
            f"asked {outputs[name].decisions} times, not {outputs[counter].decisions}",
        )
        for name in both
        if outputs[name].decisions != outputs[counter].decisions
    ]
    done = sum(first in outputs and name in outputs for name in others) + len(both)
    counts = [outputs[name].decisions for name in counting if name in outputs]
    return UnitIdentity(
        module=module,
        comparisons=len(others) + len(counted),
        identical=done - len(differing),
        decisions=(counts[0] or 0) if counts else 0,
        differing=tuple(differing),
        failures=tuple(failures),
    )
