"""Distillation: a policy that decides at once what search found out by trying.

Each round searches every training program from the policy of the round before (the default in
the first) and fits a model of gains to all trials so far (``learn.gain_model``). Searching from
the policy shows the model where it was wrong, as in DAgger (Ross, Gordon and Bagnell, AISTATS
2011). Rounds end when the validation programs no longer profit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.learn import gain_model
from nestor.learn.gain_model import GainSettings
from nestor.learn.learner import Metrics
from nestor.learn.trials import Trials
from nestor.policy import bundle
from nestor.policy.spec import Policy

DISTIL_FEATURES = ()

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class DistilSettings:
    """How often to search and retrain, and how the model is fitted."""

    rounds: int = 2
    """Policy, search, retrain: at most so often."""
    compiles: float = 9.0
    """Whole-program compiles per program and round."""
    gain: GainSettings = field(default_factory=GainSettings)
    """The model of gains."""
    cautions: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)
    """Values of ``gain.caution`` that calibration chooses from."""


@dataclass(frozen=True)
class State:
    """The run after ``step`` rounds; policies are the bytes of their files, empty for none."""

    step: int
    policy: Bytes
    """Of the last round: where the next searches start."""
    best: Bytes
    """With the smallest validation programs so far."""
    change: float
    """What ``best`` makes of the validation programs, relative to stock."""


Search = Callable[[int, Policy | None], Trials]
"""The trials of all rounds up to one, which searches from a policy (None: the default)."""

Validate = Callable[[Policy], float]
"""The relative change of the validation programs' linked bytes under a policy."""


@dataclass(frozen=True)
class Distil:
    """The learner. Settings and seed decide the result, for the same searches."""

    settings: DistilSettings
    seed: int
    features: tuple[str, ...]
    search: Search
    validate: Validate

    @property
    def steps(self) -> int:
        """How many rounds make a run."""
        return self.settings.rounds

    def init(self) -> State:
        """Return the state before the first round."""
        nothing = np.zeros(0, np.uint8)
        return State(0, nothing, nothing, 0.0)

    def batch(self, state: State) -> Trials:
        """Search from the last policy, and return the trials of all rounds."""
        return self.search(state.step, _unpack(state.policy))

    def update(self, state: State, batch: Trials) -> tuple[State, Metrics]:
        """Fit, calibrate and validate; keep the better of the new policy and the best."""
        data = gain_model.rows(batch, self.features, self.settings.gain, self.seed)
        fitted = gain_model.fit(data, self.settings.gain, self.seed)
        settings = gain_model.calibrate(fitted, data, self.settings.gain, self.settings.cautions)
        policy = gain_model.policy(fitted, data, self.features, settings, {})
        change = self.validate(policy)
        packed = _pack(policy)
        better = not state.best.size or change < state.change
        metrics = {
            "trials": float(len(batch)),
            "correlation across projects": float(np.corrcoef(data.y, fitted.across)[0, 1]),
            "caution": settings.caution,
            "validation change": change,
        }
        return State(
            state.step + 1,
            packed,
            packed if better else state.best,
            change if better else state.change,
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
