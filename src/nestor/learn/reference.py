"""The stock heuristic as the reference of all learners: what it decides and what that weighs.

Made once for a corpus and a compiler, whichever learner comes first, and kept in the user's cache.
With it comes the price of each compile and link in CPU seconds, by which budgets are counted: it
is the same for all learners.
"""

import hashlib
import io
import json
import resource
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.plugin import cache_folder
from nestor.compiler.trajectory_log import Trajectory
from nestor.corpus.model import CorpusError, Module, Program
from nestor.learn.experience import Tally, modules_of
from nestor.learn.features import MODULE_FEATURES
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import link
from nestor.rewards.weights import Weights, weigh
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_VERSION: Final = 1
_AT_ONCE: Final = 100
"""Modules whose whole logs are held in memory at the same time."""
_KEPT: Final = ("inlining_default", "effect", "caller", "callee")
"""Columns that are kept besides the features."""


@dataclass(frozen=True)
class Stock:
    """One module under the stock heuristic."""

    module: Module
    trajectory: Trajectory
    """Of the columns those of ``_recorded`` and of ``_KEPT``."""
    functions: Mapping[str, float]
    """Weighed bytes by name; see :mod:`nestor.rewards.weights`."""
    total: float
    """The module's bytes of its linked programs."""
    weights: Weights
    seconds: float
    """CPU seconds of this compile: the price of any compile of this module."""

    @property
    def default(self) -> Bools:
        """The heuristic's answers, ``[decisions]``."""
        return np.asarray(self.trajectory.records["inlining_default"] > 0)

    def unchanged_by(self, policy: Policy) -> bool:
        """Return whether the module's compile under ``policy`` is stock's.

        A policy that answers all of stock's questions as stock does is asked just these.
        """
        answers = policy.answer(self.trajectory.matrix(policy.features), self.default)
        return bool((answers == self.default).all())


@dataclass(frozen=True)
class Reference:
    """The training programs under the stock heuristic."""

    features: tuple[str, ...]
    """Those asked for."""
    stocks: tuple[Stock, ...]
    """The modules with something to decide; learners name them by their place here."""
    link_seconds: Mapping[str, float]
    """CPU seconds of one link by program."""

    @property
    def totals(self) -> F64:
        """Each module's linked bytes, ``[modules]``."""
        return np.array([stock.total for stock in self.stocks])

    def prices(self) -> dict[str, float]:
        """Return the CPU seconds of a compile of each module and of a link of each program."""
        return dict(self.link_seconds) | {s.module.name: s.seconds for s in self.stocks}

    def sample(self, rows: int, seed: int) -> tuple[F64, Bools]:
        """Return the features and answers of at most so many decisions, drawn over all modules."""
        x = np.concatenate([stock.trajectory.matrix(self.features) for stock in self.stocks])
        answers = np.concatenate([stock.default for stock in self.stocks])
        if len(x) > rows:
            chosen = np.random.default_rng([seed, 3]).choice(len(x), rows, replace=False)
            return x[chosen], answers[chosen]
        return x, answers


def reference(
    pool: Pool,
    programs: Sequence[Program],
    features: Sequence[str],
    tally: Tally,
    progress: Progress = silent,
) -> Reference:
    """Return the reference for ``programs``, from the cache or by compiling and linking them.

    :param features: of which the trajectories keep the values, beside those that learners read if
        nobody asks for others: one reference serves them all.
    :raises CorpusError: if no module has a decision that a linked program shows.
    :raises LogError: if the compiler does not offer one of the features.
    """
    modules = modules_of(pool.corpus, programs)
    path = _path(pool, programs, modules, features)
    try:
        made = _read(path, modules, tuple(features))
    except (OSError, ValueError, KeyError):  # not there, or of a process that was killed
        made = _make(pool, programs, modules, tuple(features), tally, progress)
        _write(path, made)
    if not made.stocks:
        reasons = "; ".join(sorted(tally.reasons)[:3]) or "nothing to inline"
        raise CorpusError(f"No module of the corpus gave a decision to learn from: {reasons}.")
    return made


def _make(
    pool: Pool,
    programs: Sequence[Program],
    modules: Sequence[Module],
    features: tuple[str, ...],
    tally: Tally,
    progress: Progress,
) -> Reference:
    with tempfile.TemporaryDirectory(prefix="nestor-reference-") as text:
        rolled: dict[str, Rollout] = {}
        for start in range(0, len(modules), _AT_ONCE):
            requests = [
                Request(m, "default", log=True, names=True, keep=Path(text) / f"{start + i}.o")
                for i, m in enumerate(modules[start : start + _AT_ONCE])
            ]
            progress("Recording the default heuristic", start, len(modules))
            done = pool.run(requests)
            tally.add(done)
            rolled |= {r.request.module.name: _reduced(r, features) for r in done if r.ok}
        progress("Recording the default heuristic", len(modules), len(modules))
        objects = {name: r.request.keep for name, r in rolled.items() if r.request.keep}
        links, seconds = [], {}
        for number, program in enumerate(programs):  # one by one: each is timed
            progress("Linking stock", number, len(programs))
            before = _children_seconds()
            linked = link(
                pool.plugin.toolchain,
                pool.corpus,
                program,
                objects,
                want_kept=True,
                limits=pool.limits,
            )
            seconds[program.name] = _children_seconds() - before
            if linked.failure is not None:
                tally.fail(f"{program.name}: {linked.failure}")
            links.append((program, linked))
        progress("Linking stock", len(programs), len(programs))
    sizes = {name: r.measure for name, r in rolled.items() if r.measure is not None}
    weights = weigh(links, sizes)
    stocks = []
    for name, done_ in rolled.items():
        if name in weights and done_.trajectory is not None and len(done_.trajectory):
            stock = Stock(
                done_.request.module,
                done_.trajectory,
                weights[name].functions_of(sizes[name]),
                weights[name].total(sizes[name]),
                weights[name],
                done_.cpu_seconds,
            )
            if stock.total > 0:
                stocks.append(stock)
    return Reference(features, tuple(stocks), seconds)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _recorded(features: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*MODULE_FEATURES, *features]))


def _reduced(done: Rollout, features: tuple[str, ...]) -> Rollout:
    """Keep of a log what a reference keeps: whole logs of a large corpus fill the memory."""
    log = done.trajectory
    if log is None:
        return done
    log.matrix(features)  # says which are missing
    offered = log.records.dtype.names or ()
    columns = [n for n in dict.fromkeys([*_recorded(features), *_KEPT]) if n in offered]
    records = np.empty(len(log), [(name, log.records.dtype[name]) for name in columns])
    for name in columns:
        records[name] = log.records[name]
    kept = Trajectory(
        features=features,
        records=records,
        growth_cap_reached=log.growth_cap_reached,
        asked_after_growth_cap=log.asked_after_growth_cap,
        stale_overrides=log.stale_overrides,
        names=log.names,
    )
    return Rollout(done.request, done.measure, kept, done.cpu_seconds, done.failure)


def _path(
    pool: Pool, programs: Sequence[Program], modules: Sequence[Module], features: Sequence[str]
) -> Path:
    depends = [
        _VERSION,
        pool.plugin.toolchain.build_id,
        pool.plugin.digest,
        [[p.name, p.language, [[i.kind, i.value] for i in p.inputs]] for p in programs],
        [[m.name, m.digest, list(m.options)] for m in modules],
        list(_recorded(features)),
    ]
    digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
    return cache_folder() / "references" / f"{digest[:32]}.npz"


def _write(path: Path, made: Reference) -> None:
    """Write ``made``, whole or not at all. No pickle: arrays, and one JSON text."""
    stocks = made.stocks
    text = {
        "link_seconds": dict(made.link_seconds),
        "modules": [
            {
                "name": s.module.name,
                "decisions": len(s.trajectory),
                "names": {f"{key:x}": name for key, name in s.trajectory.names.items()},
                "functions": dict(s.functions),
                "total": s.total,
                "weights": dict(s.weights.functions),
                "constants": s.weights.constants,
                "new_weak": s.weights.new_weak,
                "seconds": s.seconds,
            }
            for s in stocks
        ],
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "text": np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    }
    if stocks:
        arrays["records"] = np.concatenate([s.trajectory.records for s in stocks])
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(data.getvalue())
    partial.replace(path)


def _read(path: Path, modules: Sequence[Module], features: tuple[str, ...]) -> Reference:
    by_name = {module.name: module for module in modules}
    with np.load(path, allow_pickle=False) as arrays:
        text = json.loads(arrays["text"].tobytes())
        records = dict(arrays.items()).get("records")
    stocks, start = [], 0
    for row in text["modules"]:
        end = start + row["decisions"]
        stocks.append(
            Stock(
                by_name[row["name"]],
                Trajectory(
                    features=features,
                    records=records[start:end],  # type: ignore[index]
                    growth_cap_reached=False,
                    asked_after_growth_cap=0,
                    stale_overrides=0,
                    names={int(key, 16): name for key, name in row["names"].items()},
                ),
                row["functions"],
                row["total"],
                Weights(row["weights"], row["constants"], row["new_weak"]),
                row["seconds"],
            )
        )
        start = end
    return Reference(features, tuple(stocks), text["link_seconds"])
