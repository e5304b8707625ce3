"""Train a policy: set a learner up, run it, and write its policy with its provenance."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nestor import __version__
from nestor.api.workplace import policy_of
from nestor.errors import NestorError
from nestor.files import claimed, sha256_of
from nestor.learn.accounting import Cost, Meter, Tally
from nestor.learn.budget import Budget, Budgeted
from nestor.learn.learners import check_setup, find_learner, usual_learner
from nestor.learn.setup import Ready, Setup
from nestor.learn.training import Result, Run, train
from nestor.numbers import refuse_number, refuse_numbers
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.levels import require_decided
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Trained:
    """What a training run came to."""

    policy: Policy
    path: Path
    """The policy's file."""
    result: Result
    report: Mapping[str, Any]
    """What the learner reports at its end, by name."""
    cost: Cost
    """Of the whole run in this process."""
    preparation: Cost
    """The part of it before the first update."""
    tally: Tally


def train_policy(
    pool: Pool,
    folder: str | os.PathLike[str],
    *,
    learner: str | None = None,
    settings: Mapping[str, Any] | None = None,
    init: NamedPolicy | str | None = None,
    features: Sequence[str] = (),
    budget: Budget | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Trained:
    """Train a policy on the projects in the split ``train`` of the pool's corpus.

    :param folder: gets the policy, curves and a checkpoint; the same call goes on from there, and
        ends with the same bytes.
    :param learner: its name (docs/reference/learners.md); None takes the problem's usual one.
    :param settings: those of the learner that differ from the usual ones, by name.
    :param init: the policy to start from.
    :param features: those that the policy reads; none leaves the choice to the learner.
    :param budget: what ends the run besides the learner's steps.
    :raises NestorError: if the learner cannot do that, the folder holds another run, or another
        process is at work in it.
    """
    name = learner or usual_learner(pool.problem)
    usual = find_learner(name).settings()
    fields = {field.name for field in dataclasses.fields(usual)}
    if unknown := sorted(set(settings or {}) - fields):
        raise NestorError(
            f"The learner {name} has no setting {unknown[0]!r}; there are"
            f" {', '.join(sorted(fields))}."
        )
    setup = Setup(
        pool=pool,
        folder=Path(folder),
        seed=seed,
        tally=Tally(),
        features=tuple(features),
        init=None if init is None else policy_of(pool.problem, init).policy,
        budget=budget or Budget(),
        progress=progress,
    )
    with claimed(setup.folder, remedy="name another folder"):
        return run_learner(setup, name, dataclasses.replace(usual, **settings or {}))


def run_learner(setup: Setup, name: str, settings: Any) -> Trained:
    """Run the learner of this name to its end and write its policy to the run's folder.

    The caller claims the folder (:func:`nestor.files.claimed`).

    :param settings: all of the learner's.
    :raises NestorError: if the learner cannot do what ``setup`` asks for, or the folder holds
        another run.
    """
    refuse_numbers(settings)
    refuse_number("seed", setup.seed)
    meter, entry = Meter(), find_learner(name)
    require_decided(setup.problem, setup.pool.corpus)
    check_setup(name, setup)
    ready: Ready = entry.set_up(settings, setup)
    preparation = meter.read(setup.tally)
    identity = _identity(name, settings, ready, setup)
    learner = (
        Budgeted(ready.learner, setup.budget, setup.tally) if entry.budgeted else ready.learner
    )
    run = Run(setup.folder, identity, raisable=frozenset(["budget"]))
    result = train(learner, run, setup.progress, ready.stage)
    report = ready.after(result)
    metadata = dataclasses.replace(result.policy.metadata, provenance=identity)
    policy = dataclasses.replace(result.policy, metadata=metadata)
    path = setup.folder / "policy.safetensors"
    bundle.save(policy, path)
    return Trained(policy, path, result, report, meter.read(setup.tally), preparation, setup.tally)


def _identity(name: str, settings: Any, ready: Ready, setup: Setup) -> dict[str, Any]:
    """Return everything that decides the result; it becomes the policy's provenance."""
    pool = setup.pool
    identity = {
        "nestor": __version__,
        "problem": pool.problem.name,
        "learner": name,
        "settings": json.loads(json.dumps({**asdict(settings), **ready.inputs})),
        "seed": setup.seed,
        "features": list(ready.features),
        "init": bundle.digest(setup.init) if setup.init is not None else None,
        "corpus": pool.corpus.digest,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
    }
    if pool.problem.other_score:
        identity["score"] = pool.problem.other_score
    if setup.estimate is not None:
        identity["estimate"] = sha256_of(setup.estimate)
    if not find_learner(name).budgeted:
        return identity
    return identity | {"budget": asdict(setup.budget), "budget_unit": setup.budget.unit}
