"""What a table of learners is read against: packaged policies, and searches of the programs.

    python -m benchmarks.learner_references CORPUS OUT [--minutes 5 15] [--only NAME …]

The programs are those of ``benchmarks.learners``, the largest of every held-out project. A search
knows the program that it is judged on, which no learner does; each gets a budget's CPU minutes for
all the programs together (``benchmarks.search`` gives ``nestor tune`` what it takes by default).
OUT keeps every line as soon as it is known (``references.json``), for ``benchmarks.learner_table``.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from nestor.learn.experience import Tally
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.searches import largest_programs
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool

from benchmarks.baseline_searches import Kind, climb
from benchmarks.learners import geomean, judge
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.learn.reference import Reference, reference
from nestor.progress import silent
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

REFERENCES: Final = "references.json"

PACKAGED: Final = ("distilled", "mlgo2020", "threshold:15")
SEARCHES: Final = (*(f"{kind} search" for kind in get_args(Kind)), "nestor tune")


def lines(
    pool: Pool, programs: Sequence[Program], asked: Reference, minutes: Sequence[float]
) -> dict[tuple[str, float | None], Callable[[], float | None]]:
    """Return how to find each line, by name and CPU minutes (None: a policy that is there)."""
    prices = asked.prices()
    sweep = sum(prices.get(name, 0.0) for p in programs for name in (*p.modules, p.name)) / 60
    found: dict[tuple[str, float | None], Callable[[], float | None]] = {}
    for name in PACKAGED:
        found[name, None] = partial(_packaged, pool, programs, name, asked)
    for budget in minutes:
        compiles = budget / sweep
        for kind in get_args(Kind):
            found[f"{kind} search", budget] = partial(_climbed, pool, programs, kind, compiles)
        found["nestor tune", budget] = partial(_tuned, pool, programs, compiles)
    return found


def _packaged(pool: Pool, programs: Sequence[Program], name: str, asked: Reference) -> float | None:
    return geomean(judge(pool, programs, policy_file(name), asked))


def _climbed(pool: Pool, programs: Sequence[Program], kind: Kind, compiles: float) -> float:
    found = [climb(pool, program, kind, compiles, 0) for program in programs]
    return geometric_mean_change_pct([s for s, _ in found], [b for _, b in found])


def _tuned(pool: Pool, programs: Sequence[Program], compiles: float) -> float:
    before, after = [], []
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="nestor-learners-") as folder:
            result = tune(
                pool,
                program,
                policy_file("default"),
                TuneSettings(),
                SearchSettings(compiles=compiles),
                0,
                Path(folder),
            )
        before.append(float(result.stock.sizes["gc"].loadable))
        after.append(float(result.best.sizes["gc"].loadable))
    return geometric_mean_change_pct(before, after)


def main() -> int:
    """Find what OUT does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 15.0])
    parser.add_argument("--only", nargs="+", choices=(*PACKAGED, *SEARCHES))
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("test"))
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / REFERENCES
    known: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    with Pool(corpus, ready_plugin(None, silent)) as pool:
        asked = reference(pool, programs, MODULE_FEATURES, Tally())
        for (name, minutes), find in lines(pool, programs, asked, options.minutes).items():
            there = any((line["name"], line["minutes"]) == (name, minutes) for line in known)
            if there or (options.only and name not in options.only):
                continue
            change = find()
            known.append({"name": name, "minutes": minutes, "change_pct": change})
            path.write_text(json.dumps(known, indent=2))
            said = "nothing linked" if change is None else f"{change:+.2f} %"
            print(f"{name} {minutes or ''} {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
