"""Play episodes: compile modules under a policy and read what it decided and what it came to."""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.compiler.trajectory_log import Trajectory
from nestor.learn.batch import Batch
from nestor.learn.credit import reached_changes
from nestor.learn.experience import Tally
from nestor.learn.reference import Reference, Stock
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def draw(seed: int, step: int, count: int, modules: int) -> I64:
    """Return the modules of one step: all are visited once before one is visited again."""
    if modules == 0:
        raise ValueError("there is no module to draw")
    places = np.arange(step * count, (step + 1) * count)
    orders = {
        epoch: np.random.default_rng([seed, 4, int(epoch)]).permutation(modules)
        for epoch in np.unique(places // modules)
    }
    drawn = [orders[place // modules][place % modules] for place in places]
    return np.array(list(dict.fromkeys(drawn)), dtype=np.int64)


def episode_seed(seed: int, step: int, module: str, sample: int = 0) -> int:
    """Return the plugin's seed of one sampled episode."""
    text = f"{seed} {step} {module} {sample}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")


@dataclass(frozen=True)
class Episodes:
    """Compiles modules of a reference. What it returns depends on its arguments alone."""

    pool: Pool = field(repr=False)
    reference: Reference = field(repr=False)
    tally: Tally = field(repr=False)

    def drawn(self, seed: int, step: int, count: int) -> I64:
        """Return the modules of a learner's step. See :func:`draw`."""
        return draw(seed, step, count, len(self.reference.stocks))

    def sampled(
        self,
        policy: Policy,
        modules: Sequence[int] | I64,
        seed: int,
        step: int,
        sample: int = 0,
        temperature: float | None = None,
        callees: bool = False,
    ) -> Batch:
        """Return one episode of each module, its actions drawn as the policy's logits say.

        :param callees: in every second episode all sites of a callee draw the same number, so that
            callees are seen to go away.
        """
        with tempfile.TemporaryDirectory(prefix="nestor-episodes-") as text:
            path = _file(policy, Path(text), 0)
            requests = [
                Request(
                    stock.module,
                    path,
                    seed=episode_seed(seed, step, stock.module.name, sample),
                    seed_callees=callees and number % 2 == 1,
                    temperature=temperature,
                    log=True,
                    names=True,
                )
                for number, stock in enumerate(self.reference.stocks[int(m)] for m in modules)
            ]
            return self._batch(policy, modules, self._run(requests))

    def greedy(
        self, policy: Policy, modules: Sequence[int] | I64, like: Policy | None = None
    ) -> Batch:
        """Return one episode of each module with the policy's greedy actions.

        :param like: whose features and actions the batch is to hold, if not the policy's own.
        """
        with tempfile.TemporaryDirectory(prefix="nestor-episodes-") as text:
            path = _file(policy, Path(text), 0)
            requests = [
                Request(self.reference.stocks[int(m)].module, path, log=True, names=True)
                for m in modules
            ]
            return self._batch(like or policy, modules, self._run(requests))

    def totals(self, policies: Sequence[Policy], modules: Sequence[int] | I64) -> F64:
        """Return the bytes of each module under each policy, ``[policies, modules]``.

        NaN where a compile failed. One that would be stock's (:meth:`Stock.unchanged_by`) is not
        made.
        """
        result = np.empty((len(policies), len(modules)))
        with tempfile.TemporaryDirectory(prefix="nestor-episodes-") as text:
            requests, places = [], []
            for row, policy in enumerate(policies):
                path = _file(policy, Path(text), row)
                for column, module in enumerate(modules):
                    stock = self.reference.stocks[int(module)]
                    if stock.unchanged_by(policy):
                        self.tally.reused += 1
                        result[row, column] = stock.total
                    else:
                        requests.append(Request(stock.module, path))
                        places.append((row, column))
            for place, done in zip(places, self._run(requests), strict=True):
                stock = self.reference.stocks[int(modules[place[1]])]
                result[place] = stock.weights.total(done.measure) if done.measure else np.nan
        return result

    def _run(self, requests: Sequence[Request]) -> list[Rollout]:
        done = self.pool.run(requests)
        self.tally.add(done)
        return done

    def _batch(
        self, policy: Policy, modules: Sequence[int] | I64, rolled: Sequence[Rollout]
    ) -> Batch:
        episodes = [
            _Episode.of(policy, int(module), self.reference.stocks[int(module)], done)
            for module, done in zip(modules, rolled, strict=True)
            if done.ok and done.trajectory is not None and done.measure is not None
        ]
        counts = [len(e.x) for e in episodes]
        return Batch(
            x=np.concatenate([np.empty((0, len(policy.features))), *(e.x for e in episodes)]),
            positive=np.concatenate([np.empty(0, bool), *(e.positive for e in episodes)]),
            log_probability=np.concatenate([np.empty(0), *(e.log_probability for e in episodes)]),
            episode=np.repeat(np.arange(len(episodes)), counts).astype(np.int64),
            change=np.concatenate([np.empty(0), *(e.change for e in episodes)]),
            share=np.concatenate([np.empty(0), *(e.share for e in episodes)]),
            module=np.array([e.module for e in episodes], dtype=np.int64),
            total=np.array([e.total for e in episodes]),
            stock=np.array([self.reference.stocks[e.module].total for e in episodes]),
        )


@dataclass(frozen=True)
class _Episode:
    module: int
    x: F64
    positive: npt.NDArray[np.bool_]
    log_probability: F64
    change: F64
    share: F64
    total: float

    @staticmethod
    def of(policy: Policy, module: int, stock: Stock, done: Rollout) -> "_Episode":
        log, measure = done.trajectory, done.measure
        if log is None or measure is None:
            raise ValueError("the rollout has no log or no object")
        functions = stock.weights.functions_of(measure)
        change, share = reached_changes((stock.trajectory, stock.functions), (log, functions))
        asked = _asked(log)
        answers, default = (log.records[name][asked] > 0 for name in ("answer", "inlining_default"))
        deviates = policy.metadata.answers == "deviation"
        return _Episode(
            module,
            log.matrix(policy.features)[asked],
            answers != default if deviates else answers,
            log.records["log_probability"][asked].astype(np.float64),
            change[asked],
            share[asked],
            stock.weights.total(measure),
        )


def _asked(log: Trajectory) -> npt.NDArray[np.bool_]:
    """Return which decisions the policy took: past its limits the default takes them."""
    records = log.records
    return np.asarray((records["logit"] != 0) | (records["log_probability"] != 0))


def _file(policy: Policy, folder: Path, number: int) -> Path:
    path = folder / f"{number}.safetensors"
    path.write_bytes(bundle.to_bytes(policy))
    return path
