"""Train a network of either kind on a budget of CPU time.

Both get the same: Adam, one cycle of the learning rate over the budget, batches of blocks of
like length, and the loss |ln predicted − ln measured|, which is the relative error for small
errors and, unlike MAPE, as hard on answers that are too low. A part of the training blocks is kept
back for the interval. A killed run goes on from its checkpoint. A GPU is used if there is one.
"""

import hashlib
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import nn

from nestor.cost import conformal
from nestor.cost.baselines.network import (
    ARCHITECTURES,
    BATCH_COST,
    Encoded,
    NetworkKind,
    NetworkModel,
    answers,
    batches,
    decoded_or_none,
    device,
    logarithms,
)
from nestor.cost.blocks.table import Table
from nestor.cost.contract import ModelError
from nestor.files import replacing
from nestor.progress import Progress, silent

F64 = NDArray[np.float64]
Index = NDArray[np.int64]

_KEPT_BACK: Final = 0.05
_WARM_UP: Final = 0.03
_POOL: Final = 16_384
"""Blocks that are sorted by length together: like lengths in a batch, yet other ones every time."""
_SAVE_SECONDS: Final = 30.0


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is trained."""

    minutes: float = 12.0
    """CPU time, on one thread."""
    steps: int | None = None
    """Batches instead of minutes: the same model on every machine."""
    batch: int = BATCH_COST
    """Instructions (or a quarter of the edges) in one batch."""
    learning_rate: float = 3e-3
    """At its highest."""
    clip: float = 1.0
    """Largest norm of a step's gradient."""


@dataclass
class _Budget:
    """How far a run has come; the one thing here that changes."""

    settings: NetworkSettings
    step: int = 0
    before: float = 0.0
    """CPU seconds of earlier processes of this run."""
    started: float = 0.0

    @property
    def seconds(self) -> float:
        return self.before + time.process_time() - self.started

    @property
    def part(self) -> float:
        """The part of the budget that is used."""
        if self.settings.steps is not None:
            return self.step / max(1, self.settings.steps)
        return self.seconds / max(1e-9, 60 * self.settings.minutes)


def train(
    kind: NetworkKind,
    table: Table,
    index: Index,
    settings: NetworkSettings | None = None,
    seed: int = 0,
    checkpoint: Path | None = None,
    progress: Progress = silent,
) -> NetworkModel:
    """Return a network trained on the labelled rows ``index`` of ``table``.

    :param checkpoint: where to keep what a killed run needs; removed at the end.
    :raises ModelError: if too few rows can be used, or the checkpoint is another run's.
    """
    settings = settings or NetworkSettings()
    architecture = ARCHITECTURES[kind]
    decoded = [decoded_or_none(table.blocks[i]) for i in index.tolist()]
    usable = [i for i, found in enumerate(decoded) if found and table.labelled[index[i]]]
    if len(usable) < 20:
        raise ModelError(
            f"{len(usable)} labelled blocks are too few to train a network; take a larger table."
        )
    blocks = [found for found in decoded if found is not None]
    blocks = [decoded[i] or () for i in usable]
    targets = np.log(table.cycles[index[usable]])
    words = architecture.words_of(blocks)
    order = np.random.default_rng(seed).permutation(len(blocks))
    kept_back = order[: max(10, int(_KEPT_BACK * len(order)))]
    training = order[len(kept_back) :]
    encoded = architecture.encode(blocks, words)
    run = hashlib.sha256(targets.tobytes())
    run.update(json.dumps([kind, seed, asdict(settings), words.words]).encode())
    torch.manual_seed(seed)
    sizes = architecture.Sizes()
    network = architecture.Network(len(words), sizes).to(device())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _fit(
            network,
            encoded,
            targets,
            training,
            settings,
            seed,
            checkpoint,
            run.hexdigest(),
            progress,
        )
    finally:
        torch.set_num_threads(threads)
    held = architecture.encode([blocks[i] for i in kept_back], words)
    low, high = conformal.interval_factors(targets[kept_back] - logarithms(network, held))
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return NetworkModel(kind, sizes, words, network.eval(), low, high)


def _fit(
    network: nn.Module,
    encoded: Encoded,
    targets: F64,
    training: Index,
    settings: NetworkSettings,
    seed: int,
    checkpoint: Path | None,
    run: str,
    progress: Progress,
) -> None:
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    budget = _Budget(settings, started=time.process_time())
    if checkpoint is not None and checkpoint.exists():
        _resume(checkpoint, run, network, optimiser, budget)
    measured = torch.from_numpy(targets).float().to(device())
    saved = time.monotonic()
    network.train()
    for step, rows in enumerate(_endless(encoded.costs, training, settings.batch, seed)):
        if step < budget.step:
            continue  # done by an earlier process
        part = budget.part
        if part >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * _schedule(part)
        loss = (answers(network, encoded, rows) - measured[rows]).abs().mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
        optimiser.step()
        budget.step += 1
        progress("Training a network (per mille)", int(1000 * min(1.0, budget.part)), 1000)
        if checkpoint is not None and time.monotonic() - saved > _SAVE_SECONDS:
            _save(checkpoint, run, network, optimiser, budget)
            saved = time.monotonic()
    progress("Training a network (per mille)", 1000, 1000)


def _schedule(part: float) -> float:
    """Return the factor of the learning rate: a short rise, then half a cosine to 1 %."""
    if part < _WARM_UP:
        return 0.1 + 0.9 * part / _WARM_UP
    return 0.01 + 0.99 * (1 + math.cos(math.pi * (part - _WARM_UP) / (1 - _WARM_UP))) / 2


def _endless(costs: Index, training: Index, limit: int, seed: int) -> Iterator[Index]:
    """Yield batches, epoch after epoch; the same ones for the same seed."""
    generator = np.random.default_rng(seed)
    while True:
        order = generator.permutation(training)
        for start in range(0, len(order), _POOL):
            pool = order[start : start + _POOL]
            pool = pool[np.argsort(costs[pool], kind="stable")]
            cut = list(batches(costs, pool, limit))
            yield from (cut[i] for i in generator.permutation(len(cut)))


def _save(
    path: Path, run: str, network: nn.Module, optimiser: torch.optim.Adam, budget: _Budget
) -> None:
    arrays: dict[str, NDArray[Any]] = {"seconds": np.array(budget.seconds)}
    arrays["step"] = np.array(budget.step)
    for name, parameter in network.named_parameters():
        arrays[name] = parameter.detach().cpu().numpy()
        for key, value in optimiser.state[parameter].items():
            arrays[f"{key}:{name}"] = value.cpu().numpy()
    with replacing(path) as scratch:
        save_file(arrays, scratch, metadata={"run": run})


def _resume(
    path: Path, run: str, network: nn.Module, optimiser: torch.optim.Adam, budget: _Budget
) -> None:
    """Take over what an earlier process of this run reached."""
    try:
        data = path.read_bytes()[: 1 << 20]
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        same = header["__metadata__"]["run"] == run
        arrays = load_file(path)
        if same:
            budget.before, budget.step = float(arrays["seconds"]), int(arrays["step"])
            with torch.no_grad():
                for name, parameter in network.named_parameters():
                    parameter.copy_(torch.from_numpy(arrays[name]))
                    optimiser.state[parameter] = {
                        key: torch.from_numpy(arrays[f"{key}:{name}"]).to(home)
                        for key, home in (
                            ("step", "cpu"),  # where Adam counts, whatever it trains
                            ("exp_avg", parameter.device),
                            ("exp_avg_sq", parameter.device),
                        )
                        if f"{key}:{name}" in arrays  # not if nothing reads the parameter
                    }
            return
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"The checkpoint {path} is broken ({error}); delete it.") from None
    raise ModelError(
        f"The checkpoint {path} belongs to a run with other rows or settings; take another --out,"
        " or delete it to start again."
    )
