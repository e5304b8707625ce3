"""Judge the model of whole programs: events of the programs of a corpus, their cycles, and a fit.

    python -m benchmarks.program_model collect CORPUS --work FOLDER [--program …]
    python -m benchmarks.program_model measure CORPUS --work FOLDER --session 1 [--program …]
    python -m benchmarks.program_model judge --work FOLDER [--penalties FILE] [--out WEIGHTS.json]

``collect`` builds each program of the tier speed by the stock compiler and counts the events of its
profile run. ``measure`` measures the cycles of the same runs, all programs in turn, with a null;
give it in two sessions, and on a quiet machine. ``judge`` predicts each program by a fit without
it, with all events and without: an estimate by instructions, by J, by blocks alone, and the whole
model. What is there already is not made again. The programs run here: foreign code.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import copyfile
from typing import Final

import numpy as np

from benchmarks.regalloc_sweep import say
from nestor.build.binary import build_binaries
from nestor.build.build import Job
from nestor.cli.setup import programs_named, ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import SmokeRun, prepare
from nestor.cost.registry import open_model
from nestor.errors import NestorError
from nestor.events import table as tables
from nestor.events.simulated.collect import RunSettings, collect
from nestor.files import write_atomically
from nestor.problem.registry import find_problem
from nestor.program_cost import penalties as machines
from nestor.program_cost import truth, weights
from nestor.program_cost.quantities import QUANTITIES, quantities
from nestor.program_cost.weights import MeasuredRun
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool

PROBLEM: Final = "regalloc-eviction"
ROUNDS: Final = 4
FORMS: Final = {
    "instructions": (),
    "J": (),
    "blocks": ("compute", "recurrence"),
    "blocks + mispredictions": ("compute", "recurrence", "mispredict"),
    "instructions + events": QUANTITIES[2:],
    "whole model": QUANTITIES,
}
"""Which quantities each form of estimate reads; some have a count besides."""
_FOLDER: Final = "run"


def _place(work: Path, program: Program) -> Path:
    return work / program.name.replace("/", "_")


def _prepared(corpus: Corpus, program: Program, work: Path) -> SmokeRun | None:
    words = program.workload.profile if program.workload is not None else ()
    return prepare(corpus, program, (_place(work, program) / _FOLDER).absolute(), words)


def collect_all(corpus: Corpus, programs: Sequence[Program], work: Path) -> None:
    """Build the programs and count the events of their profile runs."""
    problem = find_problem(PROBLEM)
    missing = [p for p in programs if not (_place(work, p) / "events.parquet").exists()]
    with LocalPool(problem, corpus, ready_plugin(problem, None, silent)) as pool:
        for program in missing:
            (binary,) = build_binaries(pool, [Job(program, "gc")])
            place = _place(work, program)
            run = _prepared(corpus, program, work)
            if binary.digest is None or run is None:
                say(f"{program.name}: {binary.failure or 'it has no profile run'}")
                continue
            own = place / "program"
            copyfile(pool.objects.path(binary.digest), own)
            own.chmod(0o755)
            settings = RunSettings(stdin=run.stdin, folder=(place / _FOLDER).absolute())
            try:
                done = collect(own, run.arguments, settings)
            except NestorError as error:
                say(f"{program.name}: {error}")
                continue
            tables.write(done.table, place / "events.parquet")
            say(f"{program.name}: {done.table.instructions:,} instructions")


def measure_all(corpus: Corpus, programs: Sequence[Program], work: Path, session: int) -> None:
    """Measure the cycles of all programs that were collected, in turn."""
    found, commands = [], []
    for program in programs:
        place = _place(work, program)
        run = _prepared(corpus, program, work)
        if run is not None and (place / "events.parquet").exists():
            found.append(program)
            folder = (place / _FOLDER).absolute()
            commands.append(
                truth.Command((place / "program").absolute(), run.arguments, run.stdin, folder)
            )
    *own, null = truth.measure(commands, ROUNDS)
    for program, cycles in zip(found, own, strict=True):
        text = json.dumps(asdict(cycles), indent=2)
        write_atomically(_place(work, program) / f"cycles{session}.json", text)
    say(f"null: {100 * (null.minimum / own[0].minimum - 1):+.2f} %")


def measured(work: Path) -> Iterator[tuple[str, Path, float]]:
    """Yield name, table and cycles of each program: the least of all sessions."""
    for place in sorted(path for path in work.iterdir() if path.is_dir()):
        sessions = [json.loads(file.read_text()) for file in sorted(place.glob("cycles*.json"))]
        if sessions:
            yield place.name, place / "events.parquet", min(one["minimum"] for one in sessions)


def judge(work: Path, penalties: machines.Penalties, model_name: str, out: Path | None) -> None:
    """Print the errors of each form, and write the weights of the whole model."""
    model = open_model(model_name)
    runs: dict[str, list[MeasuredRun]] = {form: [] for form in FORMS}
    for name, path, cycles in measured(work):
        table = tables.read(path)
        totals = quantities(table, model, penalties).totals()
        accesses = sum(table.total(event) or 0 for event in ("reads", "writes"))
        # Counts stand in the place of what the blocks compute, at a usual number of cycles each.
        counts = {"instructions": 0.3, "J": 0.2, "instructions + events": 0.3}
        for form, names in FORMS.items():
            own = np.where(np.isin(QUANTITIES, names), totals, 0.0)
            if form in counts:
                number = table.instructions + (accesses if form == "J" else 0)
                own[0] = counts[form] * number
            runs[form].append(MeasuredRun(name, name, own, cycles))
    for form, rows in runs.items():
        fitted = weights.fit(rows, model_name, penalties.machine)
        errors = np.abs(list(fitted.runs.values())) * 100
        worst = max(fitted.runs, key=lambda name: abs(fitted.runs[name]))
        say(
            f"{form:24} {len(errors)} programs, mean {errors.mean():.1f} %, median"
            f" {np.median(errors):.1f} %, worst {errors.max():.0f} % ({worst})"
        )
        if form == "whole model" and out is not None:
            weights.save(fitted, out)


def main() -> None:
    """Read the command line and run one stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("stage", choices=("collect", "measure", "judge"))
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--program", nargs="*", default=())
    parser.add_argument("--session", type=int, default=1)
    parser.add_argument("--penalties")
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    if words.stage == "judge":
        judge(words.work, machines.named(words.penalties), words.model, words.out)
        return
    if words.corpus is None:
        parser.error("name a corpus")
    corpus = store.load(words.corpus)
    named = programs_named(corpus, words.program)
    programs = named or tuple(p for p in corpus.programs if p.workload is not None)
    if words.stage == "collect":
        collect_all(corpus, programs, words.work)
    else:
        measure_all(corpus, programs, words.work, words.session)


if __name__ == "__main__":
    main()
