"""The command line of this benchmark; see the package."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import benchmarks.optimal as package
from benchmarks import record as result_file
from benchmarks.machine import describe
from benchmarks.optimal import judge, linked, measure, report
from benchmarks.optimal.record import Record, load, record_path
from benchmarks.optimal.remembering import RememberingPool
from benchmarks.pool import AT_LEVEL, local_pool
from nestor.change import change_pct
from nestor.cli.console import progress as shown_progress
from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.progress import silent

ABOUT = (
    "Components of real call graphs whose optimum is known: what policies, the autotuner of"
    " Theodoridis et al. and nestor tune close of the gap between stock and optimum, by link mode;"
    " searches after so many compiles."
)


def main() -> int:
    """Run one of the steps."""
    options = _parser().parse_args()
    if options.step == "report":
        return _report(options.work, options.json)
    corpus = store.load(options.corpus)
    if options.step == "linked":
        store.save(linked.taken_only(corpus, toolchain.find()))
        return 0
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.programs or [program.name for program in corpus.programs]
    programs = [program_named(corpus, name) for name in names]
    programs.sort(key=lambda program: len(program.modules))
    if options.step == "remainder":
        return _remainder(corpus, programs, options)
    problem = AT_LEVEL[corpus.level]
    with RememberingPool(problem, corpus, ready_plugin(problem, None, silent)) as pool:
        for program in programs:
            if options.step == "enumerate":
                found = measure.enumerate_program(
                    pool, program, options.sites, options.work, options.clusters
                )
                copies = sum(part.exact for part in found.parts)
                values = sum(len(part.values) for part in found.parts)
                own = f"{len(found.parts)} components, {copies} with copies, {values} clusters"
                print(f"{program.name}: {own}", flush=True)
            elif record_path(options.work, program.name).exists():
                judge.judge_program(
                    pool, program, options.work, sorted(options.compiles), options.mode
                )
                print(f"{program.name}: judged", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(package.__doc__ or "").splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    names = "linked", "enumerate", "judge", "report", "remainder"
    step = {name: steps.add_parser(name) for name in names}
    step["linked"].add_argument("corpus", type=Path)
    for name in ("enumerate", "judge", "remainder"):
        step[name].add_argument("corpus", type=Path)
        step[name].add_argument("work", type=Path)
        step[name].add_argument("--programs", nargs="*", help="default: all of the corpus")
    step["enumerate"].add_argument("--sites", type=int, default=9, help="of a component, at most")
    step["enumerate"].add_argument("--clusters", type=int, default=300, help="with copies, at most")
    step["judge"].add_argument("--compiles", type=float, nargs="*", default=[25.0, 100.0])
    step["judge"].add_argument("--mode", choices=measure.MODES, default=measure.MODES[0])
    step["remainder"].add_argument("--compiles", type=float, default=400.0, help="at most")
    step["report"].add_argument("work", type=Path, nargs="+")
    for name in ("report", "remainder"):
        step[name].add_argument("--json", type=Path, metavar="FILE", help="write a result file")
    return parser


def _remainder(corpus: Corpus, programs: Sequence[Program], options: argparse.Namespace) -> int:
    lines: list[list[object]] = []
    with local_pool(corpus) as pool, shown_progress() as progress:
        for program in programs:
            found, left = judge.search_and_remainder(
                pool, program, options.work, options.compiles, progress
            )
            change = change_pct(
                found.stock.columns[measure.MODES[0]][found.stock.score], left.before
            )
            own = [left.sites, found.curve[-1].compiles, change, left.singles, left.pairs]
            lines.append([program.name, *own, left.failed, left.better, left.left])
            print(*lines[-1], flush=True)
    if options.json is not None:
        columns = [
            ("program", "{}"),
            ("sites", "{}"),
            ("compiles", "{:.0f}"),
            ("search", "{:+.2f} %"),
        ]
        columns += [
            ("single flips", "{:,}"),
            ("pairs", "{:,}"),
            ("not built", "{}"),
            ("better", "{}"),
        ]
        columns += [("left", "{:.3f} %")]
        tables = {"remainder": result_file.table(columns, lines)}
        result_file.write(options.json, ABOUT, tables, describe(toolchain.find()))
    return 0


def _report(folders: list[Path], json: Path | None) -> int:
    records = [load(path) for folder in folders for path in sorted(folder.glob("*.json"))]
    tables = {}
    for mode in measure.MODES:
        tables[mode] = _table(records, mode)
        for line in tables[mode]["rows"]:
            print(mode, *(f"{cell:.1f}" if isinstance(cell, float) else cell for cell in line))
        print(f"{mode}: {report.copies_matter(records, mode)} components have copies that matter")
    columns = [("project", "{}"), ("language", "{}"), ("level", "{}"), ("components", "{}")]
    columns += [("with a gap", "{}"), ("gap", "{:,.0f} B")]
    lines = report.by_project(records, measure.MODES[0])
    tables["projects"] = result_file.table(columns, lines)
    wrong = report.composed_wrongly(records, measure.MODES[0])
    print(f"{wrong} optima do not weigh, when they are built, what their clusters add up to")
    if json is not None:
        result_file.write(json, ABOUT, tables, describe(toolchain.find()))
    return 0


def _table(records: Sequence[Record], mode: str) -> result_file.Table:
    """Return a row for each way to decide, with the shares of the gap by language and level."""
    groups = {}
    for name in sorted({record.language for record in records}):
        groups[name] = [record for record in records if record.language == name]
    for name in sorted({record.level for record in records}, reverse=True):
        groups[name] = [record for record in records if record.level == name]
    closed = {
        name: {row.name: row.closed for row in report.rows(own, mode)}
        for name, own in groups.items()
    }
    columns = [("decided by", "{}"), ("components", "{}"), ("with a gap", "{}")]
    columns += [("gap closed", "{:.1f} %"), ("optimal", "{:.0f} %")]
    columns += [(f"closed, {name}", "{:.1f} %") for name in groups]
    columns += [("larger than stock", "{}"), ("larger than the autotuner", "{}")]
    lines = [
        [
            *(row.name, row.components, row.with_gap, row.closed, row.optimal),
            *(own.get(row.name) for own in closed.values()),
            *(row.larger, row.beyond),
        ]
        for row in report.rows(records, mode)
    ]
    return result_file.table(columns, lines)


if __name__ == "__main__":
    sys.exit(main())
