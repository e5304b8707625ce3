"""The identity gate on a whole corpus: ways to compile that must give the same object.

For the default heuristic: the stock compiler, the plugin idle, following the default, and
logging while it does, and the interactive channel answered with the default. For a policy: the
plugin evaluating it in C++ (what a release does), the same with the log (what training does), and
the channel answered by the same policy in Python. Ways that count their decisions must also have
been asked equally often. Failures are results: counted, named and never dropped.
"""

import hashlib
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelError, compile_over_channel
from nestor.compiler.identity import variants
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits, run
from nestor.compiler.site_features import SITE_FEATURES
from nestor.compiler.toolchain import capabilities
from nestor.compiler.trajectory_log import read
from nestor.corpus.model import Corpus, CorpusError, Module, Split
from nestor.errors import NestorError
from nestor.evaluate.result import Failure
from nestor.policy.spec import FeatureSpec, Policy, columns
from nestor.problems.inlining_size import INLINING_SIZE
from nestor.progress import Progress, silent
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import PoolSettings

Decide = Callable[[npt.NDArray[Any]], int]
"""From the features of one question (a structured scalar) to its answer, 0 or 1."""


@dataclass(frozen=True)
class Difference:
    """A comparison that did not hold."""

    module: str
    way: str
    """How the module was compiled."""
    reference: str
    """What it was compared with."""
    what: str
    """In what they differ, in a few words."""


@dataclass(frozen=True)
class ModuleIdentity:
    """All comparisons of one module."""

    module: str
    comparisons: int
    """That were due; those that a failure prevented are among them."""
    identical: int
    """That were made and held."""
    decisions: int
    """How often the inliner asked, by the first way that counts."""
    differing: tuple[Difference, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class CorpusIdentity:
    """The result of the gate on a corpus."""

    policy: str
    modules: tuple[ModuleIdentity, ...]
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
        """How often the inliner asked in one compile of all modules."""
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
class _Way:
    """One way to compile a module: by options of the compiler, or over the channel."""

    name: str
    flags: Sequence[str] = ()
    log: Path | None = None
    """Written by these options."""
    decide: Callable[[], Decide] | None = None
    """Makes what answers on the channel."""


@dataclass(frozen=True)
class _Made:
    """What a way left behind."""

    digest: str
    """SHA-256 of the object."""
    decisions: int | None
    """None where nobody counts."""


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


def check_corpus(
    corpus: Corpus,
    plugin: Plugin,
    modules: Sequence[Module],
    policy: PolicyFile,
    settings: PoolSettings | None = None,
    progress: Progress = silent,
) -> CorpusIdentity:
    """Compile ``modules`` in every way and compare, several modules at a time.

    :param policy: the default heuristic compares the plugin and the channel with stock; any
        other compares the ways to follow it with each other.
    """
    settings = settings or PoolSettings()
    limits = Limits(settings.timeout, settings.memory)
    cancelled = threading.Event()
    stage = f"Comparing objects ({policy.name})"
    progress(stage, 0, len(modules))
    with ThreadPoolExecutor(max(1, settings.jobs), "nestor-identity") as threads:
        futures = [
            threads.submit(_check, corpus, plugin, module, policy, limits, cancelled)
            for module in modules
        ]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                progress(stage, done, len(modules))
        except BaseException:  # an interrupt must not wait for the compilers
            cancelled.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
        results = tuple(future.result() for future in futures)
    return CorpusIdentity(
        policy=policy.name,
        modules=results,
        hashes={
            "corpus": corpus.digest,
            "compiler": plugin.toolchain.build_id,
            "plugin": plugin.digest,
            "policy": policy.digest,
        },
    )


def _check(
    corpus: Corpus,
    plugin: Plugin,
    module: Module,
    policy: PolicyFile,
    limits: Limits,
    cancelled: threading.Event,
) -> ModuleIdentity:
    made: dict[str, _Made] = {}
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory(prefix="nestor-identity-") as text:
        ways = _ways(plugin, policy, Path(text))
        for number, way in enumerate(ways):
            out = Path(text) / f"{number}.o"
            try:
                made[way.name] = _compile(corpus, plugin, module, way, out, limits, cancelled)
            except (NestorError, OSError) as error:
                failures.append(Failure(module.name, way.name, str(error)))
    return _judge(module.name, ways, made, tuple(failures))


def _ways(plugin: Plugin, policy: PolicyFile, folder: Path) -> tuple[_Way, ...]:
    """Return all ways to compile; the first is what the others are compared with."""
    log = folder / "log"
    has_channel = capabilities(plugin.toolchain).inliner_channel
    if policy.policy is None:
        plugged = tuple(
            _Way(v.name, v.flags, log if v.name == "logged" else None)
            for v in variants(plugin, folder)
        )
        ways: tuple[_Way, ...] = (_Way("stock"), *plugged)
        channel = _Way("channel", decide=lambda: _echo)
    else:
        given = policy.policy
        ways = (
            _Way("release", plugin.flags(policy.argument)),
            _Way("logged", plugin.flags(policy.argument, log=log), log),
        )
        channel = _Way("channel, Python", decide=lambda: _evaluate(given))
        # LLVM sends its own features only.
        has_channel = has_channel and not set(SITE_FEATURES) & set(given.features)
    return (*ways, channel) if has_channel else ways


def _compile(
    corpus: Corpus,
    plugin: Plugin,
    module: Module,
    way: _Way,
    out: Path,
    limits: Limits,
    cancelled: threading.Event,
) -> _Made:
    """Compile in one way.

    :raises NestorError: with the reason, if there is no object or no complete log.
    """
    bitcode = corpus.bitcode(module)
    command = compile_command(plugin.toolchain, module.options, bitcode, out, way.flags)
    decisions = None
    if way.decide is not None:
        decide = way.decide()

        def answer(row: npt.NDArray[Any]) -> int:
            if cancelled.is_set():
                raise ChannelError("cancelled")
            return decide(row)

        decisions = compile_over_channel(command, answer, limits)
    else:
        outcome = run(command, limits, cancelled=cancelled)
        if not outcome.ok:
            raise NestorError(outcome.reason)
        if way.log is not None:
            decisions = len(read(way.log))
    return _Made(hashlib.sha256(out.read_bytes()).hexdigest(), decisions)


def _judge(
    module: str,
    ways: Sequence[_Way],
    made: Mapping[str, _Made],
    failures: tuple[Failure, ...],
) -> ModuleIdentity:
    first, *others = (way.name for way in ways)
    # The ways that count, were they to succeed: what is due must not depend on what failed.
    counter, *counting = (w.name for w in ways if w.decide is not None or w.log is not None)
    differing = [
        Difference(module, name, first, "the object")
        for name in others
        if first in made and name in made and made[name].digest != made[first].digest
    ]
    differing += [
        Difference(
            module,
            name,
            counter,
            f"asked {made[name].decisions} times, not {made[counter].decisions}",
        )
        for name in counting
        if counter in made and name in made and made[name].decisions != made[counter].decisions
    ]
    done = sum(first in made and name in made for name in others)
    done += sum(counter in made and name in made for name in counting)
    counts = [made[name].decisions for name in (counter, *counting) if name in made]
    return ModuleIdentity(
        module=module,
        comparisons=len(others) + len(counting),
        identical=done - len(differing),
        decisions=(counts[0] or 0) if counts else 0,
        differing=tuple(differing),
        failures=failures,
    )


def _echo(row: npt.NDArray[Any]) -> int:
    return int(row[INLINING_SIZE.default_tensor][0])


def _evaluate(policy: Policy) -> Decide:
    """Return ``policy`` as something that answers on the channel.

    What is returned raises PolicyError if the compiler lacks one of the policy's features.
    """
    names: list[str] = []

    def decide(row: npt.NDArray[Any]) -> int:
        if not names:
            fields: Mapping[str, Any] = row.dtype.fields or {}
            offered = [FeatureSpec(n, str(f[0].base), f[0].shape) for n, f in fields.items()]
            columns(policy, offered, INLINING_SIZE.default_tensor)
            names.extend(policy.features)
        x = np.array([[row[name][0] for name in names]])
        return int(policy.answer(x, np.array([_echo(row) != 0]))[0])

    return decide
