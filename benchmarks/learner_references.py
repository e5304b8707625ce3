"""What a table of learners is read against: packaged policies, and searches of the programs.

    python -m benchmarks.learner_references CORPUS OUT [--minutes 5 15] [--only NAME …]

The programs are those of ``benchmarks.learners``, the largest of every held-out project. A search
sees the program that it is judged on, which no learner does; each gets a budget's CPU minutes for
all the programs together (``benchmarks.search`` gives ``nestor tune`` what it takes by default).
Every line is kept in OUT as soon as it is measured (``references.json``), for
``benchmarks.learner_table``.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, get_args

from benchmarks.baseline_searches import Kind, climb
from benchmarks.learners import geomean, judge, judging_pool
from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.files import write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.blackbox.comparison import ReusingPool
from nestor.learn.programs import largest_programs
from nestor.learn.reference import reference
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

REFERENCES: Final = "references.json"

PACKAGED: Final = ("distilled", "mlgo2020", "threshold:15")
SEARCHES: Final = (*(f"{kind} search" for kind in get_args(Kind)), "nestor tune")


def lines(
    pool: Pool, programs: Sequence[Program], minutes: Sequence[float]
) -> dict[tuple[str, float | None], Callable[[], float | None]]:
    """Return how to measure each line, by name and CPU minutes (None: a packaged policy)."""
    prices = reference(pool, programs, PROBLEM.features.unit, Tally()).prices()
    sweep = sum(prices.get(name, 0.0) for p in programs for name in (*p.modules, p.name)) / 60
    found: dict[tuple[str, float | None], Callable[[], float | None]] = {}
    judging = cache(partial(judging_pool, pool, programs))
    for name in PACKAGED:
        found[name, None] = partial(_packaged, judging, programs, name)
    for budget in minutes:
        compiles = budget / sweep
        for kind in get_args(Kind):
            found[f"{kind} search", budget] = partial(_climbed, pool, programs, kind, compiles)
        found["nestor tune", budget] = partial(_tuned, pool, programs, compiles)
    return found


def _packaged(
    judging: Callable[[], ReusingPool], programs: Sequence[Program], name: str
) -> float | None:
    return geomean(judge(judging(), programs, policy_named(name)))


def _climbed(pool: Pool, programs: Sequence[Program], kind: Kind, compiles: float) -> float:
    found = [climb(pool, program, kind, compiles, 0) for program in programs]
    return geometric_mean_change_pct([s for s, _ in found], [b for _, b in found])


def _tuned(pool: Pool, programs: Sequence[Program], compiles: float) -> float:
    before, after = [], []
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="nestor-learners-") as folder:
            result = tune(
                pool,
                LINK,
                program,
                DEFAULT,
                TuneSettings(modes=LINK.modes[:1]),
                SearchSettings(compiles=compiles),
                0,
                Path(folder),
            )
        before.append(result.stock.scores()[LINK.modes[0]])
        after.append(result.best.scores()[LINK.modes[0]])
    return geometric_mean_change_pct(before, after)


def main() -> int:
    """Measure what OUT does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 15.0])
    parser.add_argument("--only", nargs="+", choices=(*PACKAGED, *SEARCHES))
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("test"))
    if not programs:
        parser.error("the corpus has no programs in the split test")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / REFERENCES
    kept: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    with local_pool(corpus) as pool:
        for (name, minutes), measure in lines(pool, programs, options.minutes).items():
            there = any((line["name"], line["minutes"]) == (name, minutes) for line in kept)
            if there or (options.only and name not in options.only):
                continue
            change = measure()
            kept.append({"name": name, "minutes": minutes, "change_pct": change})
            write_atomically(path, json.dumps(kept, indent=2))
            text = "nothing linked" if change is None else f"{change:+.2f} %"
            print(f"{name} {minutes or ''} {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
