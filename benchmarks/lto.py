"""Inside LTO: what a policy and a search save beyond stock LTO.

    python -m benchmarks.lto CORPUS PROGRAM… [--lto full] [--policy distilled] [--compiles 13]

A row is a program: linked bytes of stock ``-Oz`` without and with LTO, then what the policy and a
search from it (``--compiles 0``: none) make of the latter, in per cent of bytes / code, and the CPU
time of a link under the policy over that of a stock one. Failures are named in the row.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler.lto import LtoKind
from nestor.compiler.objects import Measure
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.evaluate.lto import evaluate_lto
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.rewards.linked_size import link
from nestor.rollout.cache import baselines
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

Pair = tuple[float, float]
"""Linked bytes and code."""


def without_lto(pool: Pool, program: Program) -> Measure | None:
    """Link ``program`` stock, object by object."""
    modules = tuple(pool.corpus.module(name) for name in program.modules)
    objects = baselines(pool, modules, None)
    return link(pool.plugin.toolchain, pool.corpus, program, objects, limits=pool.limits).measure


def row(
    pool: Pool, program: Program, policy: PolicyFile, kind: LtoKind, compiles: float, folder: Path
) -> dict[str, Any]:
    """Measure one program."""
    (used,) = evaluate_lto(pool, [program], [policy], kind)
    plain = without_lto(pool, program)
    found: dict[str, Any] = {
        "program": program.name,
        "plain": plain.loadable if plain else None,
        "stock": None,
        "policy": None,
        "search": None,
        "cpu": used.compile_cpu_ratio,
        "failures": [f"{f.side}: {f.reason}" for f in used.failures],
    }
    for _, stock, made in used.compared:
        found |= {"stock": (stock.linked, stock.text), "policy": (made.linked, made.text)}
    if compiles and found["stock"]:
        tuned = tune(
            pool,
            program,
            policy,
            TuneSettings(lto=kind),
            SearchSettings(compiles=compiles),
            0,
            folder / program.name.replace("/", "-"),
        )
        best = tuned.best.sizes["gc"]
        found["search"] = (best.loadable, best.text)
    return found


def _change(before: Pair | None, after: Pair | None) -> str:
    if before is None or after is None:
        return f"{'—':>15}"
    linked, code = (100 * (b / a - 1) for a, b in zip(before, after, strict=True))
    return f"{linked:+6.2f} /{code:+6.2f}"


def means(rows: Sequence[dict[str, Any]], column: str) -> str:
    """Return the geometric means over the rows that have ``column``."""
    both = [(r["stock"], r[column]) for r in rows if r["stock"] and r[column]]
    if not both:
        return f"{'—':>15}"
    linked, code = (
        geometric_mean_change_pct([a[i] for a, _ in both], [b[i] for _, b in both]) for i in (0, 1)
    )
    return f"{linked:+6.2f} /{code:+6.2f}"


def main() -> int:
    """Measure the programs one after the other and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program", nargs="+")
    parser.add_argument("--lto", choices=get_args(LtoKind), default="full")
    parser.add_argument("--policy", default="distilled")
    parser.add_argument("--compiles", type=float, default=13.0)
    parser.add_argument("--out", type=Path, help="keep the searches here, to go on from")
    parser.add_argument("--jobs", type=int, default=PoolSettings().jobs)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus, policy = store.load(options.corpus), policy_file(options.policy)
    rows = []
    with (
        Pool(corpus, ready_plugin(None, lambda *_: None), PoolSettings(jobs=options.jobs)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-lto-") as text,
    ):
        for name in options.program:
            program = program_named(corpus, name)
            folder = options.out or Path(text)
            rows.append(row(pool, program, policy, options.lto, options.compiles, folder))
            made = rows[-1]
            if not options.json:
                print(
                    f"{made['program']:28} {made['plain'] or 0:>9,}"
                    f" {made['stock'][0] if made['stock'] else 0:>9,}"
                    f"  {_change(made['stock'], made['policy'])}"
                    f"  {_change(made['stock'], made['search'])}"
                    f"  {made['cpu'] or 0:.2f}",
                    *made["failures"],
                    flush=True,
                )
    if options.json:
        json.dump({"lto": options.lto, "policy": policy.digest, "rows": rows}, sys.stdout, indent=2)
        return 0
    print(f"{'geometric mean':48}  {means(rows, 'policy')}  {means(rows, 'search')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
