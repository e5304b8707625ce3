"""Our cost model beside llvm-mca, a bound and two networks: same rows, same splits, one table.

    python -m benchmarks.cost_models [--models own bound …] [--seeds 0 1 2] [--minutes 12]
    python -m benchmarks.cost_models --report      # only what is there already
    python -m benchmarks.cost_models --report --seeds 0 1 2 --docs docs/studies/cost-models.md

Each model, split and seed is trained once and keeps its model, its predictions and its numbers in a
folder (.nestor/cost-models), so that the run can be stopped and goes on, and more seeds or models
cost only themselves. All train on the stable rows of the training side and are judged by
the test side: stable rows first, all rows beside them. The result is printed as Markdown and
written to benchmarks/results/cost_models.json.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from benchmarks.cost_report import markdown, report
from benchmarks.machine import describe
from nestor.cli.console import progress
from nestor.compiler.toolchain import find
from nestor.cost.baselines import mca, rescaled
from nestor.cost.baselines.mca import McaModel
from nestor.cost.baselines.network import NetworkKind
from nestor.cost.blocks import table
from nestor.cost.blocks.splits import split
from nestor.cost.blocks.table import Table
from nestor.cost.contract import CostModel, Prediction
from nestor.cost.core.simulator import widened
from nestor.cost.judge.evaluate import assess, cpu_seconds, judged
from nestor.cost.llvm_tools import mca as mca_tool
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.registry import open_model, save_model
from nestor.cost.settings import BASELINES, SPLITS, BaselineKind, SplitName, TrainerSettings
from nestor.cost.trainers import train, training_rows
from nestor.cost.training import train as own
from nestor.cost.training.settings import TrainingSettings
from nestor.progress import Progress

F64 = NDArray[np.float64]

_OWN: Final = TrainingSettings(threads=1)  # as the networks: CPU time is compared
OWN: Final[Mapping[str, TrainingSettings]] = MappingProxyType(
    {
        "own": _OWN,
        "own, core not fitted": replace(_OWN, passes=0),
        "own, no simulated core": replace(_OWN, passes=0, core=False),  # nothing to fit
        "own, no memory of like code": replace(_OWN, memory=False),
    }
)
"""Our model, and what it is without one of its parts."""
NO_LEVELS: Final = "own, not moved to levels"
CORE_ALONE: Final = "own, the simulated core alone"
"""What the trees start from, of the very model that stands as ``own``; so is the one before."""
MODELS: Final = ("own", *BASELINES, *list(OWN)[1:], NO_LEVELS, CORE_ALONE)
NETWORKS: Final = get_args(NetworkKind)
SPEED_BLOCKS: Final = 2000
MARKS: Final = ("<!-- results of benchmarks.cost_models -->", "<!-- end of results -->")
RESULT: Final = Path("benchmarks/results/cost_models.json")


@dataclass(frozen=True)
class Run:
    """One model, split and seed."""

    model: str
    split: SplitName
    seed: int
    cpu: str = mca_tool.CPU
    """What llvm-mca models."""

    def path(self, folder: Path, suffix: str) -> Path:
        """Return where the run keeps something."""
        name = self.model.replace(", ", "-").replace(" ", "-")
        return folder / f"{name}-{self.split}-{self.seed}{suffix}"


class CoreAlone:
    """The simulated core of one of our models, without its trees; it has no interval."""

    def __init__(self, model: HybridModel) -> None:
        self._model = model

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the simulated cycles of ``blocks``; NaN where one cannot be decoded."""
        simulator = self._model.session
        simulator.keep(blocks)
        # What was met for the first time has starting values, as the model itself gives it.
        simulator.set_core(widened(self._model.part.core, simulator.templates))
        cycles = simulator.rates().astype(np.float64)
        cycles[cycles <= 0] = np.nan
        unknown = np.full(len(cycles), np.nan)
        return Prediction(cycles, unknown, unknown)


def without_levels(model: HybridModel) -> HybridModel:
    """Return our model with the answers of its trees as they are."""
    none = np.zeros(0, dtype=np.float32)
    machines = tuple(replace(machine, levels=none) for machine in model.parts.machines)
    return HybridModel(replace(model.parts, machines=machines))


def trained(run: Run, rows: Table, folder: Path, note: Progress) -> CostModel:
    """Return the run's model, trained now if it is not there; its costs stand beside it."""
    model: CostModel
    if run.model in (NO_LEVELS, CORE_ALONE):
        whole = Run("own", run.split, run.seed, run.cpu)
        model = trained(whole, rows, folder, note)
        same = whole.path(folder, ".training.json").read_text()
        run.path(folder, ".training.json").write_text(same)
        assert isinstance(model, HybridModel)
        return CoreAlone(model) if run.model == CORE_ALONE else without_levels(model)
    path, costs = run.path(folder, ".safetensors"), run.path(folder, ".training.json")
    if path.exists() and costs.exists():
        return open_model(path)
    use = training_rows(rows, split(rows, run.split, run.seed).train)
    start, checkpoint = cpu_seconds(), run.path(folder, ".checkpoint")
    if checkpoint.exists():  # what an earlier process of this run spent
        start -= float(load_file(checkpoint)["seconds"])
    if run.model in OWN:
        model = own.train(rows, use, OWN[run.model], run.seed, note)
    elif run.model == "llvm-mca":
        estimates = mca_estimates(rows, folder, note, run.cpu)
        model = McaModel(rescaled.fit(estimates[use], rows.cycles[use]), run.cpu)
    else:
        kind, settings = _baseline(run.model)
        model = train(kind, rows, use, settings, run.seed, checkpoint, note)
    save_model(model, path)
    spent = {"cpu_seconds": cpu_seconds() - start, "rows": len(use)}
    if run.model == "llvm-mca":  # the analysis of the table is shared by all splits
        spent["cpu_seconds"] = json.loads((folder / f"llvm-mca-{len(rows)}.json").read_text())
    costs.write_text(json.dumps(spent))
    return model


def named(model: str, minutes: Sequence[float]) -> list[str]:
    """Return the names of a model's runs: a network has one for each budget of CPU minutes."""
    return [f"{model}, {m:g} min" for m in minutes] if model in NETWORKS else [model]


def _baseline(name: str) -> tuple[BaselineKind, TrainerSettings]:
    """Return what :func:`named` put into a name."""
    model, _, minutes = name.removesuffix(" min").partition(", ")
    (kind,) = [kind for kind in get_args(BaselineKind) if kind == model]
    return kind, TrainerSettings(float(minutes)) if minutes else TrainerSettings()


def mca_estimates(rows: Table, folder: Path, note: Progress, cpu: str) -> F64:
    """Return llvm-mca's own cycles of all rows, computed once."""
    path = folder / f"llvm-mca-{len(rows)}.npy"
    if not path.exists():
        start = cpu_seconds()
        estimates = mca.estimate(rows.blocks, cpu, note)
        path.with_suffix(".json").write_text(json.dumps(cpu_seconds() - start))
        np.save(path, estimates)
    found: F64 = np.load(path)
    return found


def predictions(run: Run, rows: Table, folder: Path, note: Progress) -> tuple[Table, Prediction]:
    """Return the test rows and what the run's model says of them."""
    test = split(rows, run.split, run.seed).test
    part, path = rows.select(test), run.path(folder, ".npy")
    if not path.exists():
        model = trained(run, rows, folder, note)
        if isinstance(model, McaModel):
            found = rescaled.prediction(
                model.curve, mca_estimates(rows, folder, note, run.cpu)[test]
            )
        else:
            found = model.predict(part.blocks)
        np.save(path, np.stack([found.cycles, found.low, found.high]))
    cycles, low, high = np.load(path)
    return part, Prediction(cycles, low, high)


def measure(run: Run, rows: Table, folder: Path, note: Progress) -> None:
    """Make the run's numbers, if they are not there."""
    path = run.path(folder, ".json")
    if path.exists():
        return
    part, predicted = predictions(run, rows, folder, note)
    result = assess(judged(predicted, part, seconds=np.nan), part)
    content = {
        "run": asdict(run),
        "training": json.loads(run.path(folder, ".training.json").read_text()),
        "test": result.to_json(),
    }
    del content["test"]["blocks_per_second"]  # see speeds()
    path.write_text(json.dumps(content, indent=1))


def speeds(rows: Table, folder: Path, models: Sequence[str], seed: int) -> dict[str, Any]:
    """Return blocks per CPU second of every model, decoding included: all in one run.

    The slow ones have the first of the blocks that our own has.

    ``seen`` are blocks that the same model predicts again: its memory by bytes, if it has one.
    """
    test = split(rows, "random", seed).test
    few = rows.select(test[:SPEED_BLOCKS]).blocks
    found: dict[str, Any] = {}
    torch.set_num_threads(1)
    for name in models:
        run = Run(name, "random", seed)
        if not run.path(folder, ".safetensors").exists():
            continue
        model = open_model(run.path(folder, ".safetensors"))
        blocks = rows.select(test).blocks if name in OWN else few
        model.predict([bytes.fromhex("90")])
        rates = []
        for _ in range(2):
            start = cpu_seconds()
            model.predict(blocks)
            rates.append(len(blocks) / max(1e-6, cpu_seconds() - start))
        found[name] = {
            "blocks": len(blocks),
            "blocks_per_cpu_second": rates[0],
            "seen_blocks_per_cpu_second": rates[1],
        }
    return found


def main() -> int:
    """Run what is missing, then print and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--minutes", nargs="+", type=float, default=[5.0, 12.0], help="CPU time for each network"
    )
    parser.add_argument("--blocks", default="zen5", help="a table, or a data set's name")
    parser.add_argument("--cpu", default=mca_tool.CPU, help="the processor that llvm-mca models")
    parser.add_argument("--folder", type=Path, default=Path(".nestor/cost-models"))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--docs", type=Path, help="a page whose table is to be replaced")
    parser.add_argument("--speed", action="store_true", help="measure the speeds again")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows = table.named(arguments.blocks)
    models = [name for model in arguments.models for name in named(model, arguments.minutes)]
    runs = [
        Run(model, part, seed, arguments.cpu)
        for seed in arguments.seeds
        for part in arguments.splits
        for model in models
    ]
    with progress() as note:
        for run in () if arguments.report else runs:
            print(f"{run.model}, {run.split}, seed {run.seed}", file=sys.stderr, flush=True)
            measure(run, rows, folder, note)
    timing = folder / "speed.json"
    if arguments.speed or not timing.exists():
        timing.write_text(json.dumps(speeds(rows, folder, models, arguments.seeds[0]), indent=1))
    content = report(
        [run for run in runs if run.path(folder, ".json").exists()],
        lambda run: json.loads(run.path(folder, ".json").read_text()),
        lambda run: predictions(run, rows, folder, note),
    )
    content |= {
        "table": {"name": arguments.blocks, "rows": len(rows), "stable": int(rows.stable.sum())},
        "speed": json.loads(timing.read_text()),
        "machine": describe(find()),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(content, indent=1) + "\n")
    text = markdown(content)
    print(text)
    if arguments.docs is not None:
        page = arguments.docs.read_text()
        before, _, rest = page.partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        arguments.docs.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
