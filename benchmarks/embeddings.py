"""Embeddings and the call graph as features of sites: are they worth more than what they cost?

    python -m benchmarks.embeddings record CORPUS OUT --projects jsoncpp re2 … [--compiles 10]
    python -m benchmarks.embeddings compare CORPUS OUT [--repeats 3]
    python -m benchmarks.embeddings cost CORPUS OUT [--modules 8]

``record`` searches the largest program of each project as a distillation does, with how often each
entity of IR2Vec occurs in caller and callee among the features (a vocabulary of unit vectors), and
keeps the whole logs. An embedding is a linear function of these counts, so ``compare`` can try
any vocabulary on the same trials: it trains one (TransE over the triplets of training modules),
fits the models of gains of ``learn.gain_model`` with different features, and shows how well they
predict the trials of *projects* that they have not seen. ``cost`` counts the compiler's
instructions under policies that read features and answer as the default does: same objects.
"""

import argparse
import hashlib
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from nestor.compiler.trajectory_log import EXTRA_TENSORS, Trajectory
from nestor.learn.features import DISTIL_FEATURES
from nestor.learn.gain_model import GainSettings, Rows
from nestor.learn.gain_trees import Trees
from nestor.learn.neighbourhood import names, neighbourhood
from nestor.learn.searches import MODES, largest_programs
from nestor.learn.trials import Recorder, Trials, join, read, write
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.summaries import summaries
from nestor.size.examples import drawn
from nestor.tune.build import Build, Builder

from benchmarks.compile_cpu import cost as compiler_cost
from nestor.cli.setup import ready_plugin
from nestor.compiler import vocabulary
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.learn import gain_model
from nestor.policy import bundle
from nestor.policy.network import Layer, LogNormalisation, build
from nestor.policy.spec import Policy
from nestor.progress import silent
from nestor.tune.search import Point, SearchSettings, State, Trial, search

F64 = npt.NDArray[np.float64]
DIMENSION, PUBLISHED = 12, 75
"""Of the embeddings that are compared, and of those that IR2Vec trains."""
ENOUGH = 3000
"""Trials after which a program's search ends."""
ENDS = ("callee", "caller")
VOCABULARY = "embedding.txt"
"""What ``compare`` leaves for ``cost``."""


class Embedding(Plugin):
    """A plugin that offers embeddings; their vocabulary lies beside it as ``VOCABULARY``."""

    file: Path = Path()

    def flags(self, *arguments: Any, **named: Any) -> list[str]:
        """Return the options, with the vocabulary's."""
        words = ["-mllvm", f"-nestor-vocabulary={self.file}"]
        return [*super().flags(*arguments, **named), *words]


class Logs(Recorder):
    """Keeps each trial's place in the whole logs too, so that its neighbours can be found."""

    def __init__(self, program: Program, size: float, folder: Path):
        """Keep the logs in ``folder``."""
        super().__init__(program.name, size)
        self._folder, self._observed = folder, 0
        folder.mkdir(parents=True, exist_ok=True)

    def observe(self, build: Build, trials: Sequence[Trial]) -> None:
        """Take note of what ``trials`` found, and of where."""
        before = len(self)
        super().observe(build, trials)
        rows = [site.row for t in trials for site in t.move.sites if len(t.move.sites) <= 60]
        assert len(rows) == len(self) - before
        log: dict[str, str] = {}
        for module in {module for module, _ in rows}:
            records = build.trajectories[module].records
            log[module] = hashlib.sha256(records.tobytes()).hexdigest()[:16]
            path = self._folder / f"{log[module]}.npz"
            if not path.exists():
                np.savez_compressed(path, records=records)
        place = self._folder / f"rows{self._observed}.npz"
        np.savez(place, log=[log[m] for m, _ in rows], index=[int(i) for _, i in rows])
        self._observed += 1


def record(corpus: Corpus, out: Path, projects: Sequence[str], compiles: float, jobs: int) -> None:
    """Search, and keep trials and logs in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    plain = ready_plugin(None, silent)
    plugin = Embedding(plain.toolchain, plain.path)
    entities = vocabulary.entities(plugin.toolchain, out)
    Embedding.file = out / "identity.txt"
    Embedding.file.write_text(vocabulary.text(vocabulary.identity(entities)))
    chosen = [p for p in largest_programs(corpus.programs) if p.project in projects]
    with Pool(corpus, plugin, PoolSettings(jobs=jobs)) as pool:
        for program in chosen:
            path = out / f"{program.project}.safetensors"
            if path.exists():
                continue
            with tempfile.TemporaryDirectory(prefix="nestor-embeddings-") as text:
                told = summaries(pool, [program], ["gc"], Path(text))
                summary = told.get((program.name, "gc"))
                builder = Builder(pool, program, "default", MODES, summary)
                first = builder.build({})
                recorder = Logs(program, first.total, out / program.project)
                start = State(curve=(Point(builder.compiles, first.total, first.text),))
                settings = SearchSettings(compiles=compiles)
                search(
                    builder,
                    start,
                    settings,
                    0,
                    observe=recorder.observe,
                    enough=lambda known=recorder: len(known) >= ENOUGH,  # type: ignore[misc]
                )
                builder.close()
            write(recorder.trials(), path)
            print(f"{program.name}: {len(recorder)} trials", flush=True)


def logs_of(folder: Path) -> tuple[list[tuple[str, int]], dict[str, Trajectory]]:
    """Return each trial's log and decision, and the logs, of a program that was recorded."""
    places: list[tuple[str, int]] = []
    for number in range(len(list(folder.glob("rows*.npz")))):
        with np.load(folder / f"rows{number}.npz") as kept:
            places += zip(map(str, kept["log"]), map(int, kept["index"]), strict=True)
    logs = {}
    for name in dict.fromkeys(name for name, _ in places):
        records = np.load(folder / f"{name}.npz")["records"]
        own = tuple(n for n in records.dtype.names if n not in EXTRA_TENSORS)
        logs[name] = Trajectory(own, records, False, 0, 0, {})
    return places, logs


def neighbours(folder: Path, hops: int) -> F64:
    """Return the neighbourhood's features of every trial of a program, ``[trials, features]``."""
    places, logs = logs_of(folder)
    known = {name: neighbourhood(log, hops) for name, log in logs.items()}
    return np.array([known[name][index] for name, index in places])


def trained(corpus: Corpus, folder: Path, seed: int) -> tuple[tuple[str, ...], F64]:
    """Return the entities and their vectors ``[entities, PUBLISHED]``, weights multiplied in."""
    import torch

    toolchain = find()
    names_ = vocabulary.entities(toolchain, folder)
    counts: Counter[tuple[int, int, int]] = Counter()
    for module in drawn(corpus, ("train",), 2, seed):
        counts.update(vocabulary.triplets(toolchain, corpus.bitcode(module), folder))
    facts = torch.tensor(sorted(counts))
    often = torch.tensor([counts[key] ** 0.75 for key in sorted(counts)])
    generator = torch.Generator().manual_seed(seed)
    bound = 6 / PUBLISHED**0.5
    tables = [
        (torch.rand((size, PUBLISHED), generator=generator) * 2 - 1) * bound
        for size in (len(names_), int(facts[:, 2].max()) + 1)
    ]
    entity, relation = (torch.nn.Parameter(table) for table in tables)
    optimiser = torch.optim.Adam([entity, relation], lr=0.01)
    for _ in range(4000):  # TransE (Bordes et al., NIPS 2013): head + relation is the tail
        with torch.no_grad():
            entity.div_(entity.norm(dim=1, keepdim=True).clamp(min=1))
        true = facts[torch.multinomial(often, 512, replacement=True, generator=generator)]
        false = true.clone()
        side = torch.randint(0, 2, (512,), generator=generator)
        other = torch.randint(0, len(names_), (512,), generator=generator)
        false[torch.arange(512), side] = other
        off = [
            (entity[f[:, 0]] + relation[f[:, 2]] - entity[f[:, 1]]).norm(dim=1)
            for f in (true, false)
        ]
        loss = torch.relu(1 + off[0] - off[1]).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    first, last = names_.index("FloatTy"), names_.index("Function")
    place = np.arange(len(names_))
    weight = np.where(place < first, 1.0, np.where(place < last, 0.5, 0.2))
    return names_, entity.detach().numpy().astype(np.float64) * weight[:, None]


def largest_directions(counts: F64, vectors: F64, instructions: int) -> F64:
    """Return ``vectors`` in the ``DIMENSION`` directions in which functions differ most.

    :param counts: of entities in functions, of which the first ``instructions`` are opcodes.
    """
    like = counts @ vectors / np.maximum(1, counts[:, :instructions].sum(axis=1))[:, None]
    _, _, directions = np.linalg.svd(like - like.mean(axis=0), full_matrices=False)
    return np.asarray(np.rint(1000 * vectors @ directions[:DIMENSION].T), dtype=np.float64)


def with_columns(trials: Trials, more: Sequence[str], x: F64) -> Trials:
    """Return ``trials`` with further features."""
    return replace(
        trials, features=(*trials.features, *more), x=np.concatenate([trials.x, x], axis=1)
    )


def recorded(out: Path) -> list[tuple[Trials, Path]]:
    """Return what ``record`` has kept in ``out``: trials, and the folder of their logs."""
    found = [(read(path), out / path.stem) for path in sorted(out.glob("*.safetensors"))]
    return [(trials, logs) for trials, logs in found if trials]


def compare(corpus: Corpus, out: Path, kept: Sequence[tuple[Trials, Path]], repeats: int) -> None:
    """Print a row per set of features, and leave the vocabulary in ``out``."""
    trials = join([with_columns(one, names(2), neighbours(logs, 2)) for one, logs in kept])
    counted = {end: [n for n in trials.features if n.startswith(f"{end}_ir2vec_")] for end in ENDS}
    entities, vectors = trained(corpus, out, 0)
    counts = np.concatenate([trials.columns(counted[end]) for end in ENDS])
    small = largest_directions(counts, vectors, entities.index("FloatTy"))
    embedded: list[str] = []
    for end in ENDS:
        own = [f"{end}_embedding_{k}" for k in range(DIMENSION)]
        trials = with_columns(trials, own, trials.columns(counted[end]) @ small)
        embedded += own
    (out / VOCABULARY).write_text(vocabulary.text(dict(zip(entities, small, strict=True))))
    sets = {
        "the features of distillation": DISTIL_FEATURES,
        f"+ embeddings of {DIMENSION}": (*DISTIL_FEATURES, *embedded),
        "+ all counts of entities": (*DISTIL_FEATURES, *counted["callee"], *counted["caller"]),
        "+ one hop of the call graph": (*DISTIL_FEATURES, *names(1)),
        "+ two hops": (*DISTIL_FEATURES, *names(2)),
        "embeddings alone": tuple(embedded),
    }
    kind, folds = Trees(rounds=60, leaves=31), len(trials.programs)
    settings = GainSettings(repeats=repeats, folds=folds)
    print(f"{len(trials):,} trials of {', '.join(trials.programs)}")
    for name, features in sets.items():
        data = gain_model.rows(trials, features, settings, 0)
        across = gain_model.predict_across(kind, data, settings, 0)
        print(f"{name:32} {len(features):4} features  {score(data, across, settings)}", flush=True)


def score(data: Rows, across: F64, settings: GainSettings) -> str:
    """Say how well ``across`` (``gain_model.predict_across``) predicts ``data``.

    *Saved* is what the programs would save if all sites were turned around whose predicted gain
    exceeds ``settings.least``, in per cent of their linked bytes, the mean over projects.
    """
    right = [float(np.corrcoef(data.y, one)[0, 1]) for one in across]
    followed = [float(data.part[one > settings.least].sum()) for one in across]
    saved = [100 * one / settings.folds for one in followed]
    return (
        f"correlation {np.mean(right):.3f} ({min(right):.3f} to {max(right):.3f})"
        f"  saved {np.mean(saved):.2f} % ({min(saved):.2f} to {max(saved):.2f})"
    )


def cost(corpus: Corpus, out: Path, modules: int) -> None:
    """Print what reading the features costs a compile, in instructions over stock's."""
    plain = ready_plugin(None, silent)
    Embedding.file = out / VOCABULARY
    embedded = [f"{end}_ir2vec_{k}" for end in ENDS for k in range(DIMENSION)]
    sides: dict[str, tuple[Plugin, Sequence[str]]] = {
        "the features of distillation": (plain, DISTIL_FEATURES),
        f"+ embeddings of {DIMENSION}": (
            Embedding(plain.toolchain, plain.path),
            (*DISTIL_FEATURES, *embedded),
        ),
    }
    totals, same = np.zeros(1 + len(sides)), 0
    with tempfile.TemporaryDirectory(prefix="nestor-embeddings-") as text:
        folder = Path(text)
        extras: list[list[str]] = [[]]
        for plugin, features in sides.values():
            path = folder / f"reads{len(features)}.safetensors"
            bundle.save(_reader(features), path)
            extras.append(plugin.flags(path))
        for module in drawn(corpus, ("test",), 1, 0)[:modules]:
            counts, objects = [], []
            for extra in extras:
                made = folder / "made.o"
                bitcode = corpus.bitcode(module)
                command = compile_command(plain.toolchain, module.options, bitcode, made, extra)
                counts.append(compiler_cost(command, folder, instructions=True))
                objects.append(made.read_bytes())
            same += objects == objects[:1] * len(objects)
            totals += counts
            print(f"{module.name:60} {_ratios(np.array(counts))}", flush=True)
    print(f"{same} of {modules} modules with stock's object; {', '.join(sides)}: {_ratios(totals)}")


def _reader(features: Sequence[str]) -> Policy:
    """Return a policy that reads ``features`` and never leaves the default."""
    ones = np.ones(len(features))
    layer = Layer(np.zeros((1, len(features)), np.float32), np.full(1, -1, np.float32))
    return build(
        features, "deviation", LogNormalisation(0 * ones, ones), (layer,), problem="inlining-size"
    )


def _ratios(counts: F64) -> str:
    return "  ".join(f"{count / counts[0]:.4f}" for count in counts[1:])


def main() -> int:
    """Record, compare or count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("stage", choices=("record", "compare", "cost"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--projects", nargs="*", default=[])
    parser.add_argument("--compiles", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--modules", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    if options.stage == "record":
        record(corpus, options.out, options.projects, options.compiles, options.jobs)
    elif options.stage == "cost":
        if not (options.out / VOCABULARY).exists():
            parser.error(f"{options.out} holds no vocabulary: run 'compare' first")
        cost(corpus, options.out, options.modules)
    else:
        kept = recorded(options.out)
        if not kept:
            parser.error(f"{options.out} holds no trials: run 'record' first")
        compare(corpus, options.out, kept, options.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
