"""Does every compile end, and every program work, whatever the policy about registers answers?

    python -m benchmarks.regalloc_safety BENCH --work FOLDER [--sample N] [--jobs N]
        [--json benchmarks/results/regalloc.json]

The programs of the corpus BENCH (modules captured at -O2) are built under policies that answer at
random, always by the first or the last candidate, by evicting what is heaviest, and by logits that
overflow; each is linked and does its smoke run, and must leave what the stock build leaves. The
ratios are of the CPU time of code generation, which is about half of a compile.
A run that was stopped goes on from the records in FOLDER.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.regalloc_policies import Hostile, hostile
from benchmarks.regalloc_sweep import (
    Journal,
    Optimised,
    arguments,
    conclude,
    optimise,
    say,
    sweep,
)
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import run
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import link_command
from nestor.evaluate.smoke import compare_runs
from nestor.regalloc.plugin_flags import as_flags
from nestor.temporary import temporary_folder


def try_program(
    corpus: Corpus, plugin: Plugin, program: Program, ways: Sequence[Hostile]
) -> dict[str, Any]:
    """Build ``program`` in every way; return what failed and how long the compiles took."""
    clang = plugin.toolchain.clang
    with temporary_folder("safety") as text:
        folder = Path(text)
        modules: dict[str, Optimised] = {}
        for number, name in enumerate(program.modules):
            own = folder / str(number)
            own.mkdir()
            modules[name] = optimise(corpus, corpus.module(name), clang, "-O2", own)
        stock = _build(corpus, plugin, program, modules, Hostile("stock", ()), folder)
        if stock["failures"]:
            return {"failure": stock["failures"][0]}
        result: dict[str, Any] = {"modules": len(modules), "ways": {}}
        for way in ways:
            built = _build(corpus, plugin, program, modules, way, folder)
            if not built["failures"]:
                wrong = compare_runs(corpus, program, folder / "stock", folder / way.name)
                built["failures"] += [wrong.reason] if wrong else []
                built["right"] = wrong is None
            seconds, other = built.pop("seconds"), stock["seconds"]
            built["ratios"] = {m: seconds[m] / other[m] for m in seconds}
            built["seconds"] = [sum(seconds.values()), sum(other[m] for m in seconds)]
            result["ways"][way.name] = built
        return result


def _build(
    corpus: Corpus,
    plugin: Plugin,
    program: Program,
    modules: dict[str, Optimised],
    way: Hostile,
    folder: Path,
) -> dict[str, Any]:
    objects: dict[str, Path] = {}
    built: dict[str, Any] = {"failures": [], "seconds": {}, "right": False}
    words = as_flags(plugin, way.options) if way.options else []
    for number, (name, module) in enumerate(modules.items()):
        objects[name] = folder / str(number) / "module.o"
        done = module.compile(objects[name], words)
        if done.ok:
            built["seconds"][name] = done.cpu_seconds
        else:
            built["failures"].append(f"{name}: {done.reason}")
    if not built["failures"]:
        linked = run(link_command(plugin.toolchain, corpus, program, objects, folder / way.name))
        if not linked.ok:
            built["failures"].append(f"link: {linked.reason}")
    return built


def rows(results: dict[str, Any], ways: Sequence[Hostile]) -> list[list[Any]]:
    """Return a row for each way."""
    table: list[list[Any]] = []
    good = [result for result in results.values() if "failure" not in result]
    for way in ways:
        own = [result["ways"][way.name] for result in good]
        ratios = [ratio for built in own for ratio in built["ratios"].values()]
        row: list[Any] = [way.name, sum(r["modules"] for r in good), len(ratios), len(own)]
        row.append(sum(built["right"] for built in own))
        sums = [sum(built["seconds"][side] for built in own) for side in (0, 1)]
        median, worst = statistics.median(ratios or [0.0]), max(ratios, default=0.0)
        table.append([*row, median, worst, sums[0] / sums[1] if sums[1] else 0.0])
    return table


def main() -> None:
    """Build, run, print and record."""
    parser = arguments(str(__doc__).partition("\n")[0], "programs to build, small ones first")
    parser.add_argument("corpus", type=Path)
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    plugin = ensure_plugin(find())
    options.work.mkdir(parents=True, exist_ok=True)
    ways = hostile(options.work)
    programs = {p.name: p for p in corpus.programs if p.smoke}
    names = sorted(programs, key=lambda n: (len(programs[n].modules), n))[: options.sample]
    results = sweep(
        Journal(options.work / "safety.jsonl", plugin.digest),
        names,
        lambda name: try_program(corpus, plugin, programs[name], ways),
        options.jobs,
        say,
    )
    columns = [(t, "{}") for t in ("answers", "modules", "compiled", "programs", "right output")]
    columns += [(t, "{:.2f}×") for t in ("CPU, median module", "worst module", "all modules")]
    failures = {
        f"{program}, {way}": built["failures"][0]
        for program, result in results.items()
        for way, built in result.get("ways", {}).items()
        if built["failures"]
    }
    failures |= {p: result["failure"] for p, result in results.items() if "failure" in result}
    conclude("safety", columns, rows(results, ways), failures, plugin, options.json)


if __name__ == "__main__":
    main()
