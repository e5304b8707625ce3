"""What a search finds beyond a policy: linked bytes against whole-program compiles.

    python -m benchmarks.search CORPUS PROGRAM… [--policy shipped] [--compiles 25] [--mode gc]

Each program is tuned from the policy, with the program's summary, as ``nestor tune`` does. A row
shows linked bytes and code against stock after some numbers of whole-program compiles.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nestor.cli.setup import program_named, ready_plugin
from nestor.corpus import store
from nestor.corpus.relink import LinkMode
from nestor.evaluate.groups import style_group
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.progress import silent
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool
from nestor.rollout.summaries import reads_program, summaries
from nestor.tune.search import Point, SearchSettings
from nestor.tune.session import TuneSettings, tune

SHOWN = (1.0, 5.0, 10.0, 15.0, 25.0)
"""Whole-program compiles at which a curve is shown; the first is the policy alone."""


def at(curve: tuple[Point, ...], compiles: float) -> Point:
    """Return what a curve has reached after ``compiles``."""
    return [point for point in curve if point.compiles <= compiles][-1]


def _cell(point: Point, stock: Point) -> str:
    linked, code = 100 * (point.total / stock.total - 1), 100 * (point.text / stock.text - 1)
    return f"{linked:+6.2f}/{code:+6.2f}"


def main() -> int:
    """Tune the programs one after the other and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program", nargs="+")
    parser.add_argument("--policy", default="shipped")
    parser.add_argument("--compiles", type=float, default=25.0)
    parser.add_argument("--mode", choices=("gc", "no-gc", "icf"), default="gc")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    mode: LinkMode = options.mode
    corpus, policy = store.load(options.corpus), policy_file(options.policy)
    rows: list[dict[str, Any]] = []
    with (
        Pool(corpus, ready_plugin(None, silent)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-search-") as text,
    ):
        for number, name in enumerate(options.program):
            program = program_named(corpus, name)
            folder = Path(text) / str(number)
            told = (
                summaries(pool, [program], [mode], folder) if reads_program(policy.policy) else {}
            )
            result = tune(
                pool,
                program,
                policy,
                TuneSettings(modes=(mode,)),
                SearchSettings(compiles=options.compiles),
                options.seed,
                folder,
                summary=told.get((program.name, mode)),
            )
            stock = result.curve[0]
            shown = [at(result.curve, compiles) for compiles in SHOWN]
            rows.append(
                {
                    "program": program.name,
                    "group": style_group(corpus, program),
                    "stock": stock.total,
                    "text": stock.text,
                    "curve": [asdict(point) for point in result.curve],
                    "overrides": len(result.overrides),
                    "best": asdict(shown[-1]),
                }
            )
            if not options.json:
                cells = "  ".join(_cell(point, stock) for point in shown)
                print(f"{program.name:32} {stock.total:>10,.0f}  {cells}", flush=True)
    if options.json:
        json.dump({"compiles": SHOWN, "policy": policy.digest, "rows": rows}, sys.stdout, indent=2)
        return 0
    for group in sorted({row["group"] for row in rows}):
        own = [row for row in rows if row["group"] == group]
        linked = geometric_mean_change_pct(
            [row["stock"] for row in own], [row["best"]["total"] for row in own]
        )
        code = geometric_mean_change_pct(
            [row["text"] for row in own], [row["best"]["text"] for row in own]
        )
        print(f"{group:32} {len(own):>3} programs  linked {linked:+.2f} %  text {code:+.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
