"""Inside LTO: what a policy and a search save beyond stock LTO.

    python -m benchmarks.lto CORPUS [PROGRAM…] --kept FILE [--lto full thin] [--policy shipped-lto]
        [--compiles 25] [--json FILE]

Each program (default: all of the split test) is linked by stock LTO at ``-Oz`` and under the
policy, link mode gc, and with ``--compiles`` searched as ``nestor tune`` does. A line of the file
``--kept`` is one link or search: what is there and did not fail is not done again, so the command
may be stopped and called for other corpora. ``--json`` writes the tables of all lines
(``benchmarks.lto_tables``).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

from benchmarks import record
from benchmarks.lto_tables import tables_of, trials_table
from benchmarks.machine import describe
from benchmarks.model_card import origin
from benchmarks.pool import PROBLEM, local_pool, policy_named
from nestor.build.build import Build, Built, Job
from nestor.cli.policies.builds import lto_build
from nestor.cli.setup import programs_named
from nestor.compiler import toolchain as toolchains
from nestor.compiler.invocation import LtoKind
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare import select_programs
from nestor.policy.names import NamedPolicy
from nestor.problem.in_builds import search_starts
from nestor.problem.problem import Pool
from nestor.rollout.local_pool import PoolSettings
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

Line = dict[str, Any]


def key(line: Line) -> tuple[Any, ...]:
    """Return what a line is about: a measurement of the same is not made again."""
    return tuple(line.get(name) for name in ("kind", "program", "lto", "policy", "compiles"))


def read(path: Path) -> list[Line]:
    """Return the lines of ``path``, the last of those about the same."""
    lines = record.json_lines(path, may_lack=True)
    return list({key(line): line for line in lines}.values())


def linked(pool: Pool, build: Build, program: Program, policy: NamedPolicy) -> Line:
    """Link ``program`` by stock LTO and under ``policy``."""
    stock, made = build.run(pool, [Job(program, "gc"), Job(program, "gc", policy)])
    failures = [side.failure for side in (stock, made) if side.failure is not None]
    return {
        "stock": _pair(stock),
        "made": _pair(made),
        "cpu_seconds": [side.compiles[0].cpu_seconds for side in (stock, made)],
        "failure": failures[0] if failures else None,
    }


def searched(pool: Pool, build: Build, program: Program, compiles: float, folder: Path) -> Line:
    """Search ``program`` from the best of the starts that ``nestor tune`` takes."""
    starts = search_starts(PROBLEM.moves().policies, lto=True)
    settings = TuneSettings(modes=("gc",), policies=starts[1:])
    budget = SearchSettings(compiles=compiles)
    first = policy_named(starts[0])
    try:
        done = tune(pool, build, program, first, settings, budget, 0, folder)
    except NestorError as error:
        return {"stock": None, "made": None, "failure": str(error)}
    sides = (side.columns["gc"] for side in (done.stock, done.best))
    stock, made = ([columns["linked"], columns["text"]] for columns in sides)
    return {"stock": stock, "made": made, "start": done.policy.name, "failure": None}


def _pair(built: Built) -> list[float] | None:
    if built.columns is None:
        return None
    return [built.columns["linked"], built.columns["text"]]


def main() -> int:
    """Measure what is missing, printing a row for each, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program", nargs="*")
    parser.add_argument("--kept", type=Path, required=True, help="a line for each measurement")
    parser.add_argument("--of", default="bench", help="the set of programs, as the tables name it")
    parser.add_argument("--lto", nargs="+", choices=get_args(LtoKind), default=["full"])
    parser.add_argument("--policy", default="shipped-lto")
    parser.add_argument("--compiles", type=float, default=0.0, help="of a search; 0: none")
    parser.add_argument("--out", type=Path, help="keep the searches here, to go on from")
    parser.add_argument("--trials", type=Path, help="the folder of the policy's, for the tables")
    parser.add_argument("--jobs", type=int, default=PoolSettings().jobs)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus, policy = store.load(options.corpus), policy_named(options.policy)
    programs = programs_named(corpus, options.program) or select_programs(corpus, "test")
    done = {key(line) for line in read(options.kept) if line["failure"] is None}
    with (
        local_pool(corpus, PoolSettings(jobs=options.jobs)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-lto-") as text,
    ):
        for kind in options.lto:
            build = PROBLEM.builds()[lto_build(kind)]
            for program in programs:
                line: Line = {
                    "kind": "search" if options.compiles else "link",
                    "of": options.of,
                    "program": program.name,
                    "project": program.project,
                    "language": program.language,
                    "style": corpus.project(program.project).style,
                    "lto": kind,
                    "policy": policy.digest[:12],
                }
                if options.compiles:
                    line["compiles"] = options.compiles
                if key(line) in done:
                    continue
                if options.compiles:
                    folder = (options.out or Path(text)) / program.name.replace("/", "-")
                    line |= searched(pool, build, program, options.compiles, folder / kind)
                else:
                    line |= linked(pool, build, program, policy)
                with options.kept.open("a") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                changes = [
                    f"{100 * (after / before - 1):+.2f}"
                    for before, after in zip(line["stock"] or (), line["made"] or (), strict=False)
                ]
                print(f"{kind:5} {program.name:40} {' / '.join(changes)} {line['failure'] or ''}")
                sys.stdout.flush()
    if options.json:
        about = "A policy and a search inside LTO against stock LTO at -Oz: linked bytes / code."
        tables = tables_of(read(options.kept), policy.digest[:12])
        if policy.policy is not None:
            tables["origin"] = origin(policy.policy)
        if options.trials is not None:
            tables["training"] = trials_table(options.trials)
        record.write(options.json, about, tables, describe(toolchains.find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
