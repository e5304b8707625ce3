"""The command line of this benchmark; see the package."""

import argparse
import sys
from pathlib import Path

import benchmarks.optimal as package
from benchmarks import record as result_file
from benchmarks.machine import describe
from benchmarks.optimal import judge, measure, report
from benchmarks.optimal.record import load, record_path
from benchmarks.pool import local_pool
from nestor.cli.setup import program_named
from nestor.compiler import toolchain
from nestor.corpus import store


def main() -> int:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=(package.__doc__ or "").splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    first, second = steps.add_parser("enumerate"), steps.add_parser("judge")
    for step in (first, second):
        step.add_argument("corpus", type=Path)
        step.add_argument("work", type=Path)
        step.add_argument("--programs", nargs="*", help="default: all of the corpus")
    first.add_argument("--sites", type=int, default=6, help="of a component, at most")
    first.add_argument("--clusters", type=int, default=300, help="of a component, at most")
    second.add_argument("--compiles", type=float, nargs="*", default=[25.0, 100.0])
    second.add_argument("--label", default="tune")
    third = steps.add_parser("report")
    third.add_argument("work", type=Path, nargs="+")
    third.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    if options.step == "report":
        return _report(options.work, options.json)
    corpus = store.load(options.corpus)
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.programs or [program.name for program in corpus.programs]
    with local_pool(corpus) as pool:
        for program in (program_named(corpus, name) for name in names):
            if options.step == "enumerate":
                found = measure.enumerate_program(
                    pool, program, options.sites, options.work, options.clusters
                )
                values = sum(len(part.values) for part in found.parts)
                print(f"{program.name}: {len(found.parts)} components, {values} clusters")
            elif record_path(options.work, program.name).exists():
                judge.judge_program(
                    pool, program, options.work, sorted(options.compiles), options.label
                )
                print(f"{program.name}: judged", flush=True)
    return 0


def _report(folders: list[Path], json: Path | None) -> int:
    records = [load(path) for folder in folders for path in sorted(folder.glob("*.json"))]
    tables = {}
    groups = sorted({(record.level, record.language) for record in records})
    for mode in measure.MODES:
        lines: list[list[object]] = []
        for level, language in groups:
            own = [r for r in records if (r.level, r.language) == (level, language)]
            lines += [
                [level, language, row.name, row.components, row.closed, row.optimal, row.larger]
                for row in report.rows(own, mode)
            ]
        for line in lines:
            print(mode, *(f"{cell:.1f}" if isinstance(cell, float) else cell for cell in line))
        copies, wrong = report.copies_matter(records, mode), report.composed_wrongly(records, mode)
        print(f"{mode}: {copies} components have copies that matter, {wrong} do not add up")
        columns = [("level", "{}"), ("language", "{}"), ("decided by", "{}"), ("components", "{}")]
        columns += [("gap closed", "{:.1f} %"), ("optimal", "{:.0f} %"), ("larger", "{}")]
        tables[mode] = result_file.table(columns, lines)
    if json is not None:
        about = (
            "Components of real call graphs whose optimum is known: what policies, the autotuner"
            " of Theodoridis et al. and nestor tune close of the gap between stock and optimum, by"
            " link mode; searches after so many compiles."
        )
        result_file.write(json, about, tables, describe(toolchain.find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
