"""Embeddings and the call graph as features of sites: are they worth more than what they cost?

    python -m benchmarks.embeddings record CORPUS OUT --projects jsoncpp re2 … [--compiles 10]
    python -m benchmarks.embeddings compare CORPUS OUT [--repeats 3]
    python -m benchmarks.embeddings cost CORPUS OUT [--modules 8]

``record`` searches the largest program of each project as a distillation does, with how often each
entity of IR2Vec occurs in caller and callee among the features (a vocabulary of unit vectors), and
keeps the whole logs. An embedding is a linear function of these counts, so ``compare`` can try
any vocabulary on the same trials. It trains one (TransE over the triplets of training modules),
fits the models of gains of distillation with different features, and shows how well they predict
the trials of *projects* that they have not seen. ``cost`` counts the compiler's
instructions under policies that read features and answer as the default does: same objects.
"""

import argparse
import hashlib
import io
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.ablation import FEATURES
from benchmarks.compile_cpu import cost as compiler_cost
from benchmarks.embedding_vocabulary import DIMENSION, largest_directions, trained
from benchmarks.pool import LINK, PROBLEM
from nestor.build.incremental import ProgramBuild
from nestor.cli.setup import ready_plugin
from nestor.compiler.invocation import compile_command
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.files import write_atomically
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings, Rows
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.trials import Recorder, Trials, join, read, write
from nestor.learn.programs import largest_programs
from nestor.policy import bundle
from nestor.policy.names import DEFAULT
from nestor.policy.network import Layer, LogNormalisation, build
from nestor.policy.spec import Policy
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.features import vocabulary
from nestor.problems.inlining_size.features.neighbourhood import names, neighbourhood
from nestor.problems.inlining_size.log import trajectory
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.problems.inlining_size.problem import InliningSize
from nestor.problems.inlining_size.size.examples import drawn
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.tune.moves import Evidence
from nestor.tune.search import Point, SearchSettings, State, search
from nestor.tune.steps.findings import Trial

F64 = npt.NDArray[np.float64]
ENOUGH = 3000
"""Trials after which a program's search ends."""
LARGEST_GROUP = 60
"""Questions of a move; trials of larger ones are not kept (``nestor.learn.distil.trials``)."""
ENDS = ("callee", "caller")
VOCABULARY = "embedding.txt"
"""What ``compare`` leaves for ``cost``."""


@dataclass(frozen=True)
class WithVocabulary(InliningSize):
    """Inlining for size with embeddings among the compiler's features."""

    vocabulary: Path = Path()
    """The file of ``-nestor-vocabulary``."""

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one module; the stock compiler knows nothing of a vocabulary."""
        if request.policy is None:
            return super().compile(request, place)
        options = (*request.unit.options, *vocabulary_flags(self.vocabulary))
        own = replace(request, unit=replace(request.unit, options=options))
        return replace(super().compile(own, place), request=request)


def with_vocabulary(file: Path) -> WithVocabulary:
    """Return the problem whose compiles read the vocabulary ``file``."""
    own = {field.name: getattr(PROBLEM, field.name) for field in fields(PROBLEM)}
    return WithVocabulary(**own, vocabulary=file)


def vocabulary_flags(file: Path) -> list[str]:
    """Return the options that name a vocabulary."""
    return ["-mllvm", f"-nestor-vocabulary={file.resolve()}"]


class Logs(Recorder):
    """Keeps each trial's place in the whole logs too, so that its neighbours can be found."""

    def __init__(self, program: Program, size: float, folder: Path):
        """Keep the logs in ``folder``."""
        super().__init__(program.name, size)
        self._folder, self._observed = folder, 0
        folder.mkdir(parents=True, exist_ok=True)

    def observe(self, build: ProgramBuild, evidence: Evidence, trials: Sequence[Trial]) -> None:
        """Add what ``trials`` found, and where."""
        before = len(self)
        super().observe(build, evidence, trials)
        moves = [trial.move.questions for trial in trials]
        rows = [question.row for own in moves if len(own) <= LARGEST_GROUP for question in own]
        assert len(rows) == len(self) - before
        log: dict[str, str] = {}
        for module in {module for module, _ in rows}:
            records = build.trajectories[module].decisions
            log[module] = hashlib.sha256(records.tobytes()).hexdigest()[:16]
            path = self._folder / f"{log[module]}.npz"
            if not path.exists():
                save(path, records=records)
        place = self._folder / f"rows{self._observed}.npz"
        save(
            place,
            log=np.array([log[m] for m, _ in rows], dtype=str),
            index=np.array([i for _, i in rows], dtype=np.int64),
        )
        self._observed += 1


def save(path: Path, **arrays: Any) -> None:
    """Write arrays to a file, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomically(path, content.getvalue())


def record(corpus: Corpus, out: Path, projects: Sequence[str], compiles: float, jobs: int) -> None:
    """Search, and keep trials and logs in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    plugin = ready_plugin(PROBLEM, None, silent)
    entities = vocabulary.entities(plugin.toolchain, out)
    file = out / "identity.txt"
    write_atomically(file, vocabulary.text(vocabulary.identity(entities)))
    chosen = [p for p in largest_programs(corpus.programs) if p.project in projects]
    with LocalPool(with_vocabulary(file), corpus, plugin, PoolSettings(jobs=jobs)) as pool:
        for program in chosen:
            path = out / f"{program.project}.safetensors"
            if path.exists():
                continue
            summary = PROBLEM.summaries(pool, [program], ["gc"]).get((program.name, "gc"))
            builder = LINK.incremental(pool, program, DEFAULT, LINK.modes, summary)
            first = builder.build({})
            recorder = Logs(program, first.total, out / program.project)
            search(
                builder,
                PROBLEM.moves(),
                State(curve=(Point.of(builder.compiles, first),)),
                SearchSettings(compiles=compiles, exact=0, pairs=False, learned=False),
                0,
                observe=recorder.observe,
                enough=lambda own=recorder: len(own) >= ENOUGH,  # type: ignore[misc]
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
        logs[name] = trajectory(np.load(folder / f"{name}.npz")["records"])
    return places, logs


def neighbours(folder: Path, hops: int) -> F64:
    """Return the neighbourhood's features of every trial of a program, ``[trials, features]``."""
    places, logs = logs_of(folder)
    by_log = {name: neighbourhood(log, hops) for name, log in logs.items()}
    return np.array([by_log[name][index] for name, index in places])


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
    write_atomically(out / VOCABULARY, vocabulary.text(dict(zip(entities, small, strict=True))))
    sets = {
        "the features of distillation": FEATURES,
        f"+ embeddings of {DIMENSION}": (*FEATURES, *embedded),
        "+ all counts of entities": (*FEATURES, *counted["callee"], *counted["caller"]),
        "+ one hop of the call graph": (*FEATURES, *names(1)),
        "+ two hops": (*FEATURES, *names(2)),
        "embeddings alone": tuple(embedded),
    }
    kind, folds = Trees(rounds=60, leaves=31), len(trials.programs)
    settings = GainSettings(repeats=repeats, folds=folds)
    print(f"{len(trials):,} trials of {', '.join(trials.programs)}")
    for name, features in sets.items():
        data = gain_model.rows(trials, features, PROBLEM, settings, 0)
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
    plugin = ready_plugin(PROBLEM, None, silent)
    embedded = [f"{end}_ir2vec_{k}" for end in ENDS for k in range(DIMENSION)]
    sides: dict[str, tuple[Sequence[str], list[str]]] = {
        "the features of distillation": (FEATURES, []),
        f"+ embeddings of {DIMENSION}": (
            (*FEATURES, *embedded),
            vocabulary_flags(out / VOCABULARY),
        ),
    }
    totals, same = np.zeros(1 + len(sides)), 0
    with tempfile.TemporaryDirectory(prefix="nestor-embeddings-") as text:
        folder = Path(text)
        extras: list[list[str]] = [[]]
        for features, more in sides.values():
            path = folder / f"reads{len(features)}.safetensors"
            bundle.save(_reader(features), path)
            extras.append([*plugin_flags(plugin, path), *more])
        for module in drawn(corpus, ("test",), 1, 0)[:modules]:
            counts, objects = [], []
            for extra in extras:
                out_file = folder / "module.o"
                bitcode = corpus.bitcode(module)
                command = compile_command(
                    plugin.toolchain, module.options, bitcode, out_file, extra
                )
                counts.append(compiler_cost(command, folder, instructions=True))
                objects.append(out_file.read_bytes())
            same += objects == objects[:1] * len(objects)
            totals += counts
            print(f"{module.name:60} {_ratios(np.array(counts))}", flush=True)
    print(f"{same} of {modules} modules with stock's object; {', '.join(sides)}: {_ratios(totals)}")


def _reader(features: Sequence[str]) -> Policy:
    """Return a policy that reads ``features`` and never leaves the default."""
    ones = np.ones(len(features))
    layer = Layer(np.zeros((1, len(features)), np.float32), np.full(1, -1, np.float32))
    return build(
        features, "deviation", LogNormalisation(0 * ones, ones), (layer,), problem=PROBLEM.name
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
