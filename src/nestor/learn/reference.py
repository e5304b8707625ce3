"""The stock heuristic as the reference of all learners: what it decides and what that scores.

It is recorded once for a corpus and a compiler, whichever learner comes first, and kept in the
user's cache. With it comes the price of each compile and link in CPU seconds, by which budgets are
counted: it is the same for all learners.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.plugin import cache_folder
from nestor.corpus.model import Module, Program
from nestor.learn.accounting import Tally
from nestor.learn.answers import default_examples, reproduces_default
from nestor.learn.batch import Examples
from nestor.learn.programs import nothing_to_decide, units_of
from nestor.policy.names import DEFAULT
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout
from nestor.problem.score import Scorer
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.rollout.kept import Arrays, keep_arrays, read_arrays

F64 = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

_VERSION: Final = 3
_AT_ONCE: Final = 100
"""Units whose whole logs are held in memory at the same time."""


@dataclass(frozen=True)
class Stock:
    """One unit under the stock heuristic."""

    unit: Module
    trajectory: Trajectory
    """Of the columns, those that the reference records (:func:`record`)."""
    parts: Mapping[str, float]
    """Score by part (function); lower is better."""
    total: float
    """The unit's score."""
    scorer: Scorer
    seconds: float
    """CPU seconds of this compile: the price of any compile of this unit."""

    def unchanged_by(self, policy: Policy) -> bool:
        """Tell whether the unit's compile under ``policy`` is stock's, without compiling it."""
        return reproduces_default(policy, self.trajectory)


@dataclass(frozen=True)
class Questions:
    """What the stock heuristic was asked in the training programs."""

    problem: Problem
    features: tuple[str, ...]
    """Those that policies are to read."""
    logs: tuple[Trajectory, ...]

    def sample(self, questions: int, seed: int) -> Examples:
        """Return at most so many questions, drawn over all units, with the default's answers."""
        whole = default_examples(self.logs, self.features, self.problem.rule)
        if len(whole.action) <= questions:
            return whole
        generator = np.random.default_rng([seed, 3])
        return whole.select(generator.choice(len(whole.action), questions, replace=False))


@dataclass(frozen=True)
class Reference:
    """The training programs under the stock heuristic."""

    problem: Problem
    features: tuple[str, ...]
    """Those that policies are to read."""
    stocks: tuple[Stock, ...]
    """The units with something to decide; learners name them by their place here."""
    link_seconds: Mapping[str, float]
    """CPU seconds of one link by program."""

    @property
    def totals(self) -> F64:
        """Each unit's score, ``[units]``."""
        return np.array([stock.total for stock in self.stocks])

    @property
    def questions(self) -> Questions:
        """What was asked in the units."""
        logs = tuple(stock.trajectory for stock in self.stocks)
        return Questions(self.problem, self.features, logs)

    def prices(self) -> dict[str, float]:
        """Return the CPU seconds of a compile of each unit and of a link of each program."""
        return dict(self.link_seconds) | {s.unit.name: s.seconds for s in self.stocks}

    def sample(self, questions: int, seed: int) -> Examples:
        """Return at most so many questions, drawn over all units, with the default's answers."""
        return self.questions.sample(questions, seed)


def reference(
    pool: Pool,
    programs: Sequence[Program],
    features: Sequence[str],
    tally: Tally,
    progress: Progress = silent,
) -> Reference:
    """Return the reference for ``programs``, from the cache or by compiling and scoring them.

    :param features: whose values the trajectories keep, beside those of
        ``problem.features.unit``: one reference serves all learners that read no others.
    :raises CorpusError: if no unit has a decision that a program shows.
    :raises LogError: if the compiler does not offer one of the features.
    """
    units = units_of(pool.corpus, programs)
    path = _path(pool, programs, units, features)
    arrays = read_arrays(path)
    if arrays is None:
        found = record(pool, programs, tuple(features), tally, progress)
        keep_arrays(_to_arrays(found), path)
    else:
        found = _from_arrays(arrays, pool.problem, units, tuple(features))
    if not found.stocks:
        raise nothing_to_decide(tally)
    return found


def record(
    pool: Pool,
    programs: Sequence[Program],
    features: tuple[str, ...],
    tally: Tally,
    progress: Progress = silent,
) -> Reference:
    """Compile and score ``programs`` under the default heuristic. See :func:`reference`."""
    problem, units = pool.problem, units_of(pool.corpus, programs)
    stage, rolled = "Recording the default heuristic", dict[str, Rollout]()
    for start in range(0, len(units), _AT_ONCE):
        requests = [
            Request(unit, DEFAULT, log=True, names=True, keep=True)
            for unit in units[start : start + _AT_ONCE]
        ]
        progress(stage, start, len(units))
        done = pool.run(requests)
        tally.add(done)
        rolled |= {r.request.unit.name: _reduced(r, problem, features) for r in done if r.ok}
    progress(stage, len(units), len(units))
    scorers = problem.scorers(pool, programs, rolled, progress)
    for failure in scorers.failures:
        tally.fail(failure)
    for one in rolled.values():
        if one.object is not None:
            pool.objects.release(one.object)
    stocks = []
    for name, one in rolled.items():
        scorer = scorers.units.get(name)
        if scorer is not None and one.trajectory is not None and len(one.trajectory):
            stock = Stock(
                one.request.unit,
                one.trajectory,
                scorer.parts(one.outcome),
                scorer.total(one.outcome),
                scorer,
                one.cpu_seconds,
            )
            if stock.total > 0:
                stocks.append(stock)
    return Reference(problem, features, tuple(stocks), scorers.link_seconds)


def _recorded(problem: Problem, features: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*problem.features.unit, *features]))


def _reduced(done: Rollout, problem: Problem, features: tuple[str, ...]) -> Rollout:
    """Keep of a log what a reference keeps: whole logs of a large corpus fill the memory."""
    log = done.trajectory
    if log is None:
        return done
    log.rows(features)  # raises LogError with the names of those that are missing
    inputs = _recorded(problem, features)
    answers = (problem.default_column, "answer", *problem.kept_columns)
    candidates = None if log.candidates is None else _columns(log.candidates, inputs)
    own = answers if candidates is not None else (*inputs, *answers)
    kept = Trajectory(
        features=features,
        decisions=_columns(log.decisions, own),
        default_column=problem.default_column,
        candidates=candidates,
        question=log.question,
        names=log.names,
        facts=log.facts,
    )
    return replace(done, trajectory=kept)


def _columns(records: Records, names: Sequence[str]) -> Records:
    """Copy those of ``names`` that there are."""
    offered = records.dtype.names or ()
    columns = [name for name in dict.fromkeys(names) if name in offered]
    result = np.empty(len(records), [(name, records.dtype[name]) for name in columns])
    for name in columns:
        result[name] = records[name]
    return result


def _path(
    pool: Pool, programs: Sequence[Program], units: Sequence[Module], features: Sequence[str]
) -> Path:
    depends = [
        _VERSION,
        pool.problem.name,
        pool.plugin.toolchain.build_id,
        pool.plugin.digest,
        [[p.name, p.language, [[i.kind, i.value] for i in p.inputs]] for p in programs],
        [[m.name, m.digest, list(m.options)] for m in units],
        [*_recorded(pool.problem, features), pool.problem.default_column],
        list(pool.problem.kept_columns),
    ]
    digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
    return cache_folder() / "references" / f"{digest[:32]}.npz"


def _to_arrays(found: Reference) -> Arrays:
    """Return what is kept of a reference: arrays, and one JSON text; no pickle."""
    logs = [stock.trajectory for stock in found.stocks]
    text = {
        "link_seconds": dict(found.link_seconds),
        "units": [
            {
                "name": s.unit.name,
                "questions": len(s.trajectory),
                "rows": len(s.trajectory.questions),
                "names": {f"{key:x}": name for key, name in s.trajectory.names.items()},
                "facts": dict(s.trajectory.facts),
                "parts": dict(s.parts),
                "total": s.total,
                "scorer": s.scorer.to_json(),
                "seconds": s.seconds,
            }
            for s in found.stocks
        ],
    }
    arrays: dict[str, Records] = {"text": np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)}
    if logs:
        arrays["decisions"] = np.concatenate([log.decisions for log in logs])
    candidates = [log.candidates for log in logs if log.candidates is not None]
    if candidates:
        arrays["candidates"] = np.concatenate(candidates)
        arrays["question"] = np.concatenate([log.questions for log in logs])
    return arrays


def _from_arrays(
    records: Arrays, problem: Problem, units: Sequence[Module], features: tuple[str, ...]
) -> Reference:
    by_name = {unit.name: unit for unit in units}
    text = json.loads(records["text"].tobytes())
    stocks, first, first_row = [], 0, 0
    for unit in text["units"]:
        own = slice(first, first + unit["questions"])
        rows = slice(first_row, first_row + unit["rows"])
        many = "candidates" in records
        trajectory = Trajectory(
            features=features,
            decisions=records["decisions"][own],
            default_column=problem.default_column,
            candidates=records["candidates"][rows] if many else None,
            question=records["question"][rows] if many else None,
            names={int(key, 16): name for key, name in unit["names"].items()},
            facts=unit["facts"],
        )
        scorer = problem.scorer(unit["scorer"])
        seconds = unit["seconds"]
        stocks.append(
            Stock(by_name[unit["name"]], trajectory, unit["parts"], unit["total"], scorer, seconds)
        )
        first, first_row = own.stop, rows.stop
    return Reference(problem, features, tuple(stocks), text["link_seconds"])
