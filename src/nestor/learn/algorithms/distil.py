"""Distillation: a policy that decides at once what search found out by trying.

Each round searches every training program from the policy of the round before (in the first from
the default, or from a policy that was given) and fits a model of gains to all trials so far
(``learn.gain_model``). Searching from the policy shows the model where it was wrong, as in DAgger
(Ross, Gordon and Bagnell, AISTATS 2011). A round fits several candidates and follows each with more
or less caution; the validation programs, built under all of them, choose. Rounds end when those no
longer profit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from nestor.compiler.lto import LtoKind
from nestor.learn import gain_model
from nestor.learn.gain_model import GainSettings
from nestor.learn.gain_network import Network
from nestor.learn.gain_trees import Trees
from nestor.learn.learner import Metrics
from nestor.learn.searches import start_digest
from nestor.learn.trials import Trials
from nestor.learn.validation import Verdict
from nestor.policy import bundle
from nestor.policy.spec import Policy

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class DistilSettings:
    """How often to search and retrain, and how the model is fitted."""

    rounds: int = 1
    """Policy, search, retrain: at most so often."""
    compiles: float = 13.0
    """Whole-program compiles per program and round, at most."""
    trials: int = 4000
    """Sites tried after which a program has told enough in a round."""
    model: Literal["trees", "network"] = "trees"
    """What kind the models are."""
    gain: GainSettings = field(default_factory=GainSettings)
    """How the models are fitted, and how the policy follows them."""
    trees: Trees = field(default_factory=Trees)
    """Models that are trees."""
    network: Network = field(default_factory=Network)
    """Models that are networks."""
    candidates: int = 5
    """Models fitted with other draws of rows and features."""
    cautions: tuple[float, ...] = (0.35, 0.5, 0.7)
    """Spreads that the predicted gain must exceed: validation chooses one, and a candidate."""
    tolerance: float = 0.001
    """How much a validation program may grow; beyond it the one that grows least is chosen."""
    worthwhile: float = 0.002
    """How much smaller a later round must make the validation programs to be believed."""
    lto: LtoKind | None = None
    """Search and validate inside the linker, under LTO of this kind."""
    projects: tuple[str, ...] = ()
    """Training projects to search (default: all)."""


@dataclass(frozen=True)
class State:
    """The run after ``step`` rounds; policies are the bytes of their files, empty for none."""

    step: int
    searched: Bytes
    """The SHA-256 of the policies that the rounds have searched from, 32 bytes each."""
    policy: Bytes
    """Of the last round: where the next searches start."""
    best: Bytes
    """With the smallest validation programs so far."""
    change: float
    """What ``best`` makes of the validation programs, relative to stock."""


Search = Callable[[Sequence[str], Policy | None], Trials]
"""The trials of searches from earlier policies, by digest, and from one (None: the default)."""

Validate = Callable[[Policy], Verdict]
"""What a policy makes of the validation programs."""


@dataclass(frozen=True)
class Candidate:
    """A policy that might become the round's."""

    number: int
    caution: float
    policy: Policy
    verdict: Verdict


def choose(found: Sequence[Candidate], tolerance: float) -> Candidate:
    """Return the best on average of those that make no program grow beyond ``tolerance``.

    If all do, the one whose worst program grows least is returned.
    """
    return min(found, key=lambda one: (max(one.verdict.worst, tolerance), one.verdict.mean))


@dataclass(frozen=True)
class Distil:
    """The learner. Settings and seed decide the result, for the same searches."""

    settings: DistilSettings
    seed: int
    features: tuple[str, ...]
    search: Search
    validate: Validate
    start: Policy | None = None
    """Where the first searches start, and what has to be beaten; None is the default heuristic."""

    @property
    def steps(self) -> int:
        """How many rounds make a run."""
        return self.settings.rounds

    def init(self) -> State:
        """Return the state before the first round."""
        nothing = np.zeros(0, np.uint8)
        start = nothing if self.start is None else _pack(self.start)
        return State(0, nothing, start, nothing, 0.0)

    def batch(self, state: State) -> Trials:
        """Search from the last policy, and return the trials of all rounds."""
        earlier = [part.tobytes().hex() for part in state.searched.reshape(-1, 32)]
        return self.search(earlier, _unpack(state.policy))

    def update(self, state: State, batch: Trials) -> tuple[State, Metrics]:
        """Fit, build and choose; the new policy is the best if it is clearly better."""
        settings, gain = self.settings, self.settings.gain
        kind = settings.trees if settings.model == "trees" else settings.network
        data = gain_model.rows(batch, self.features, gain, self.seed)
        across = gain_model.predict_across(kind, data, gain, self.seed)
        found: list[Candidate] = []
        for number in range(settings.candidates):
            fitted = gain_model.fit(kind, data, across, self.seed + number)
            for caution in settings.cautions:
                followed = replace(gain, caution=caution)
                made = gain_model.policy(kind, fitted, data, self.features, followed)
                found.append(Candidate(number, caution, made, self.validate(made)))
        chosen = choose(found, settings.tolerance)
        packed, change = _pack(chosen.policy), chosen.verdict.mean
        best, before = state.best, state.change
        if state.step == 0 and self.start is not None:
            best, before = state.policy, self.validate(self.start).mean
        better = not best.size or change < before - settings.worthwhile
        metrics = {
            "trials": float(len(batch)),
            "correlation across projects": float(np.corrcoef(data.y, across[0])[0, 1]),
            "candidate": float(chosen.number),
            "caution": chosen.caution,
            "validation change": change,
            "validation change, worst program": chosen.verdict.worst,
            "validation change, worst candidate": max(one.verdict.mean for one in found),
        }
        start = bytes.fromhex(start_digest(_unpack(state.policy)))
        return State(
            state.step + 1,
            np.concatenate([state.searched, np.frombuffer(start, np.uint8)]),
            packed,
            packed if better else best,
            change if better else before,
        ), metrics

    def policy(self, state: State) -> Policy:
        """Return the best policy so far."""
        found = _unpack(state.best)
        if found is None:
            raise ValueError("there is no policy before the first round")
        return found


def _pack(policy: Policy) -> Bytes:
    return np.frombuffer(bundle.to_bytes(policy), np.uint8)


def _unpack(data: Bytes) -> Policy | None:
    return bundle.from_bytes(data.tobytes()) if data.size else None
