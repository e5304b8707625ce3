"""Models of gains by a multi-layer perceptron, trained with Adam (Kingma and Ba, ICLR 2015)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nestor.policy import network
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.policy.spec import Policy, PolicyError

F64 = npt.NDArray[np.float64]

_NO_PROBLEM = "none"
"""Named by a network that is no policy yet."""


@dataclass(frozen=True)
class Network:
    """Multi-layer perceptrons on the logarithms of the features."""

    hidden: tuple[int, ...] = (64, 32)
    """Widths of the hidden layers."""
    steps: int = 6000
    """Gradient steps of a model."""
    coarse_steps: int = 2000
    """Gradient steps of a coarse one."""
    batch_size: int = 512
    learning_rate: float = 0.003
    decay: float = 1e-4
    """Weight decay."""
    huber: float = 20.0
    """Units of the score; an error beyond this counts linearly."""

    def fit(self, x: F64, y: F64, weight: F64, seed: int, *, coarse: bool) -> "Perceptron":
        """Fit. See :class:`nestor.learn.distil.gain_model.Kind`."""
        import torch  # only a training run needs it, and its import takes a second

        torch.set_num_threads(1)  # sums in one order, whatever the machine
        rng = np.random.default_rng(seed)
        normalisation = LogNormalisation(*network.fit_normalisation(x))
        layers = network.initial_layers((x.shape[1], *self.hidden, 1), rng)
        names = [str(column) for column in range(x.shape[1])]
        template = network.build(names, "deviation", normalisation, layers, problem=_NO_PROBLEM)
        net = network.to_torch(template)
        inputs = torch.from_numpy(template.normalise(x))
        targets = torch.from_numpy(y.astype(np.float32))
        importance = torch.from_numpy((weight / weight.mean()).astype(np.float32))
        optimiser = torch.optim.AdamW(net.parameters(), self.learning_rate, weight_decay=self.decay)
        steps = self.coarse_steps if coarse else self.steps
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for _ in range(steps):
            batch = torch.from_numpy(rng.integers(len(y), size=self.batch_size))
            error = torch.nn.functional.huber_loss(
                net(inputs[batch]), targets[batch], reduction="none", delta=self.huber
            )
            optimiser.zero_grad()
            (error * importance[batch]).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        return Perceptron(network.from_torch(net, template))

    def nothing(self, features: Sequence[str], problem: str) -> MlpPolicy:
        """Return the policy. See :class:`nestor.learn.distil.gain_model.Kind`."""
        count = len(features)
        normalisation = LogNormalisation(np.zeros(count), np.ones(count))
        layer = Layer(np.zeros((1, count), np.float32), np.zeros(1, np.float32))
        return network.build(features, "deviation", normalisation, [layer], problem=problem)

    def weighted_sum(self, parts: Sequence[tuple[Policy, float]], offset: float) -> Policy:
        """Sum. See :class:`nestor.learn.distil.gain_model.Kind`."""
        own = [(part, weight) for part, weight in parts if isinstance(part, MlpPolicy)]
        if len(own) < len(parts):
            raise PolicyError("only networks can be added to networks")
        return network.weighted_sum(own, offset)


@dataclass(frozen=True)
class Perceptron:
    """A fitted model."""

    net: MlpPolicy

    def predict(self, x: F64) -> F64:
        """Predict. See :class:`nestor.learn.distil.gain_model.Model`."""
        return self.net.fast_logits(x)

    def policy(self, features: Sequence[str], problem: str) -> MlpPolicy:
        """Return the policy. See :class:`nestor.learn.distil.gain_model.Model`."""
        metadata = replace(self.net.metadata, features=tuple(features), problem=problem)
        return replace(self.net, metadata=metadata)
