"""How large is the page of ``nestor report``, and how long does a browser take to open it?

    python -m benchmarks.report_page CORPUS --program lz4 [--policy mlgo2020] [--decisions 100000]
        [--runs 5] [--page FILE] [--trace FILE] [--json benchmarks/results/report_page.json]

Modules of a real program are repeated, each time with other keys and names, until there are as many
decisions as wanted. Chromium opens the page from disk. *Open* is from the start of the navigation
to the end of the first view's drawing, and *decisions* the same where the page is opened with all
decisions in a table. *Search* is a word and a comparison of a feature, typed at once. Needs
``apt-get install chromium`` and ``pip install playwright``. A corpus that was captured with
``--lines`` gives the page the places in the source, too.
"""

import argparse
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.machine import describe
from nestor.cli.setup import program_named
from nestor.compiler import toolchain as toolchains
from nestor.compiler.demangle import demangle
from nestor.compiler.plugin import ensure_plugin
from nestor.corpus import store
from nestor.problem.registry import find_problem
from nestor.report.page import page
from nestor.report.sides import ModuleSide, Side, Sides, compile_sides
from nestor.report.tables import page_data
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.temporary import temporary_folder

_IDS = ("site", "caller", "callee")


def repeated(sides: Sides, decisions: int) -> Sides:
    """Repeat the modules of a program until the first policy has at least ``decisions``."""
    first = sides.policies[0]
    copies = -(-decisions // max(1, sum(len(m.trajectory) for m in first.modules.values())))
    keys = np.random.default_rng(0).integers(1, 2**63, copies)

    def side(own: Side) -> Side:
        modules = {
            f"copy{number}/{name}": _copy(module, number, key)
            for number, key in enumerate(keys)
            for name, module in own.modules.items()
        }
        return replace(own, modules=modules)

    return Sides(sides.program, sides.level, side(sides.default), tuple(map(side, sides.policies)))


def _copy(module: ModuleSide, number: int, key: np.int64) -> ModuleSide:
    log = module.trajectory
    rows = log.decisions.copy()
    for name in _IDS:
        rows[name] ^= key
    names = {n ^ int(key): f"{text}.{number}" for n, text in log.names.items()}
    return replace(
        module,
        trajectory=replace(log, decisions=rows, names=names),
        parts={f"{name}.{number}": score for name, score in module.parts.items()},
        places=replace(
            module.places,
            functions={f"{n}.{number}": place for n, place in module.places.functions.items()},
        ),
    )


def opened(path: Path, runs: int, trace: Path | None) -> dict[str, list[float]]:
    """Open a page several times and return milliseconds by what was waited for."""
    from playwright.sync_api import sync_playwright

    times: dict[str, list[float]] = {"open": [], "decisions": [], "search": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for run in range(runs):
            for name, anchor in (("open", "#overview"), ("decisions", "#decisions")):
                tab: Any = browser.new_page(viewport={"width": 1280, "height": 800})
                if trace is not None and run == 0 and name == "open":
                    browser.start_tracing(page=tab, path=trace)
                tab.goto(path.resolve().as_uri() + anchor)
                tab.wait_for_selector("body[data-ready]", timeout=120_000)
                times[name].append(float(tab.evaluate("Number(document.body.dataset.ready)")))
                if trace is not None and run == 0 and name == "open":
                    browser.stop_tracing()
                if name == "decisions":
                    times["search"].append(float(tab.evaluate(_SEARCH)))
                tab.close()
        browser.close()
    return times


_SEARCH = """async () => {
  const query = document.getElementById("decision-query");
  const count = document.getElementById("decision-count");
  const before = count.textContent;
  const start = performance.now();
  query.value = ".7 cost_estimate>0";
  query.dispatchEvent(new Event("input"));
  while (count.textContent === before) await new Promise((done) => setTimeout(done));
  return performance.now() - start;
}"""


def main() -> int:
    """Make the page, open it and print sizes and times."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--program", default="lz4")
    parser.add_argument("--policy", default="mlgo2020")
    parser.add_argument("--against")
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    problem, toolchain = find_problem("inlining-size"), toolchains.find()
    corpus = store.load(options.corpus)
    program = program_named(corpus, options.program)
    policies = [problem.policy(name) for name in (options.policy, options.against) if name]
    with LocalPool(problem, corpus, ensure_plugin(toolchain), PoolSettings(jobs=2)) as pool:
        sides = repeated(compile_sides(pool, program, policies), options.decisions)
    symbols = {
        name
        for side in sides.all
        for module in side.modules.values()
        for name in (*module.parts, *module.trajectory.names.values())
    }
    data, pack = page_data(problem, sides, demangle(toolchain, sorted(symbols)))
    text = page(data, pack)
    with temporary_folder("page") as folder:
        path = options.page or Path(folder) / "page.html"
        path.write_text(text)
        times = opened(path, options.runs, options.trace)
    size = len(text) / 1e6
    first = [
        data["decisions"][0]["rows"], data["functions"]["rows"], data["modules"]["rows"], size
    ]  # fmt: skip
    measured = [round(statistics.median(own)) for own in times.values()]
    worst = [round(max(own)) for own in times.values()]
    columns = [("decisions", "{:,}"), ("functions", "{:,}"), ("modules", "{:,}")]
    columns += [("MB", "{:.2f}"), ("open, ms", "{:,}"), ("with all decisions", "{:,}")]
    columns += [("search", "{:,}"), ("open, worst", "{:,}")]
    row = [*first, *measured, worst[0]]
    print(describe(toolchain))
    for (title, form), cell in zip(columns, row, strict=True):
        print(f"{title:20} {form.format(cell)}")
    if options.json:
        about = f"The page of {program.name} under {options.policy}, its modules repeated."
        tables = {"opening": record.table(columns, [row])}
        record.write(options.json, about, tables, describe(toolchain))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
