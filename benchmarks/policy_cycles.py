"""What a policy does to programs by the model of whole programs, beside J of the same runs.

    python -m benchmarks.policy_cycles CORPUS POLICY [--problem inlining-speed] [--program …]
        --work FOLDER [--json benchmarks/results/inlining_speed.json]

Each program is built stock and under the policy, both run the input `measure` of its workload under
`nestor events`, and what `nestor costmodel program NEW --against STOCK` says becomes a row: the
change of predicted cycles, of J (instructions + reads + writes), and whether the model can tell.
Events that were counted already are not counted again. Runs the programs: foreign code.
"""

import argparse
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.program_model import CACHES, counted
from benchmarks.regalloc_sweep import say
from nestor.build.binary import link_binaries
from nestor.build.build import Job
from nestor.cli.setup import ready_plugin
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import prepare
from nestor.cost.registry import open_model_for
from nestor.errors import NestorError
from nestor.events import table as tables
from nestor.policy.names import NamedPolicy
from nestor.problem.registry import find_problem
from nestor.program_cost import penalties as machines
from nestor.program_cost import weights
from nestor.program_cost.compare import compare
from nestor.program_cost.estimate import estimate
from nestor.program_cost.quantities import quantities
from nestor.program_cost.truth import Command
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool

COLUMNS: Final = [
    ("program", "{}"),
    ("predicted cycles", "{:+.2f} %"),
    ("J", "{:+.2f} %"),
    ("the model says", "{}"),
]


def built(
    pool: LocalPool, programs: Sequence[Program], policy: NamedPolicy, work: Path
) -> dict[str, tuple[Path, Path]]:
    """Return the builds of each program, stock and under the policy; names are their digests."""
    jobs = [Job(program, "gc", side) for program in programs for side in (None, policy)]
    found: dict[str, list[Path]] = {}
    for binary in link_binaries(pool, jobs, silent):
        name = binary.job.program.name
        if binary.digest is None:
            say(f"{name}: {binary.failure}")
            continue
        out = work / name.replace("/", "_") / binary.digest
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pool.objects.path(binary.digest), out)
        out.chmod(0o755)
        found.setdefault(name, []).append(out)
    return {name: (sides[0], sides[1]) for name, sides in found.items() if len(sides) == 2}


def events_of(corpus: Corpus, program: Program, binary: Path) -> tables.EventTable:
    """Count the events of one run, or read them.

    :raises NestorError: if the run fails.
    """
    path = binary.with_suffix(".parquet")
    if not path.exists():
        words = program.workload.measure if program.workload is not None else ()
        folder = binary.with_suffix(".run").absolute()
        smoke = prepare(corpus, program, folder, words)
        if smoke is None:
            raise NestorError(f"{program.name} has no input to run")
        command = Command(binary.absolute(), smoke.arguments, smoke.stdin, folder)
        tables.write(counted(command, CACHES).table, path)
    return tables.read(path)


def main() -> int:
    """Print the table, and write it to a result file if one is named."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policy")
    parser.add_argument("--problem", default="inlining-speed", help="what the policy decides")
    parser.add_argument("--program", nargs="+", default=[], help="programs, by their last names")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    options = parser.parse_args()
    problem, corpus = find_problem(options.problem), store.load(options.corpus)
    wanted = set(options.program)
    programs = [
        program
        for program in corpus.programs_of("test")
        if program.workload and (not wanted or program.name.rpartition("/")[2] in wanted)
    ]
    with LocalPool(problem, corpus, ready_plugin(problem, None, silent)) as pool:
        builds = built(pool, programs, problem.policy(options.policy), options.work)
    penalties = machines.named(None)
    fitted = weights.packaged(penalties.machine)
    model = open_model_for("shipped", None, penalties.machine)
    rows: list[list[Any]] = []
    for program in programs:
        if program.name not in builds:
            continue
        try:
            stock, own = (
                estimate(quantities(events_of(corpus, program, side), model, penalties), fitted)
                for side in builds[program.name]
            )
        except (NestorError, OSError) as error:
            say(f"{program.name}: {error}")
            continue
        found = compare(own, stock, fitted)
        cycles, total = (100 * (ratio - 1) for ratio in (found.ratio, found.executed_ratio))
        rows.append([program.name.rpartition("/")[2], cycles, total, found.verdict])
        say(f"{rows[-1][0]}: cycles {cycles:+.2f} %, J {total:+.2f} %: {found.verdict}")
    rows.sort(key=lambda cells: -cells[1])
    if rows:
        means = [statistics.fmean(row[column] for row in rows) for column in (1, 2)]
        rows.append([f"mean of {len(rows)}", *means, ""])
    if options.json:
        made = {f"cycles_{options.policy.replace('-', '_')}": record.table(COLUMNS, rows)}
        record.write(options.json, "Predicted cycles.", made, machine.describe(find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
