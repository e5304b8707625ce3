"""Who pays if a COMDAT function is inlined at all its calls in a module, and who gains?

    python -m benchmarks.copies_trials record BENCH OUT.jsonl [--modules 24] [--projects NAME…]
    python -m benchmarks.copies_trials table OUT.jsonl [--json FILE]

``record`` compiles modules of the training and validation projects twice: as the default decides,
and with many callees inlined at all their calls, whose reaches are disjoint. What changed is put
down to each callee: bytes of functions that the module has for itself, of COMDAT functions, and of
the callee. A module that is in OUT is left out, so the same command goes on where it stopped.
``table`` says what that comes to where 1, 3 or 10 modules do the same.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash

from benchmarks import record as results
from benchmarks.pool import local_pool
from nestor.build.assembly import id_in_unit, ids_by_name
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.problems.inlining_size.log import FAILED
from nestor.problems.inlining_size.search.overrides import Key, to_text
from nestor.problems.inlining_size.search.sites import Site, SiteReach, sites_of
from nestor.tune.moves import Move
from nestor.tune.steps.credit import assign, changes

_LARGEST: Final = 260_000
"""Bytes of bitcode; larger modules take long and hold more of the same."""
_COPIES: Final = (1, 3, 10)
_COSTS: Final = (10, 40, 250)

Sizes = dict[int, tuple[int, bool]]
"""Bytes of each function, and whether it is COMDAT, by id."""


def modules_of(corpus: Corpus, projects: list[str], most: int) -> list[Module]:
    """Return modules of C++ projects in turns, at most so many of each project."""
    ranked = []
    for project in corpus.projects:
        if project.split == "test" or (projects and project.name not in projects):
            continue
        own = [
            m for m in corpus.modules
            if m.project == project.name and m.language == "c++"
            and corpus.bitcode(m).stat().st_size < _LARGEST
        ]  # fmt: skip
        own.sort(key=lambda m: xxhash.xxh3_64_intdigest(m.name.encode()))
        ranked += [(place / min(len(own), most), m) for place, m in enumerate(own[:most])]
    return [m for _, m in sorted(ranked, key=lambda pair: (pair[0], pair[1].name))]


def sizes_of(done: Rollout) -> Sizes:
    """Return what each function takes of an object."""
    ids = ids_by_name(done.trajectory)
    found: Sizes = {}
    for function in done.outcome.functions:
        number = id_in_unit(function, ids, done.trajectory)
        found[number] = (found.get(number, (0,))[0] + function.size, function.weak)
    return found


def trials_of(pool: Pool, module: Module) -> list[dict[str, Any]]:
    """Return what was found out of the callees of one module."""
    (before,) = pool.run([Request(module, DEFAULT, log=True, names=True)])
    if before.trajectory is None or before.outcome is None:
        return []
    log, stock = before.trajectory, sizes_of(before)
    decisions = log.decisions
    by_callee: defaultdict[int, list[Site]] = defaultdict(list)
    for site in sites_of({module.name: log}):
        if decisions["effect"][site.row[1]] != FAILED:
            by_callee[site.callee].append(site)
    reach = SiteReach({module.name: log})
    moves = {
        callee: Move.one(Key("callee", callee), True, tuple(sites))
        for callee, sites in by_callee.items()
        if not any(site.default for site in sites)
        and stock.get(callee, (0, False))[1]
        and max(site.cost for site in sites) <= _COSTS[-1]
    }
    order = np.random.default_rng(xxhash.xxh3_64_intdigest(module.name.encode()))
    chosen, claimed = list[Move](), set[int]()
    for callee in order.permutation(np.array(sorted(moves), dtype=np.uint64)).tolist():
        claims = reach.of(moves[callee])
        if claimed.isdisjoint(claims):
            claimed |= claims
            chosen.append(moves[callee])
    text = to_text({move.key: True for move in chosen})
    (after,) = pool.run([Request(module, DEFAULT, overrides=text, log=True, names=True)])
    if after.trajectory is None or after.outcome is None:
        return []
    tried = sizes_of(after)
    changed = changes(_bytes(stock), _bytes(tried))
    later = SiteReach({module.name: after.trajectory})
    found = []
    for share in assign([reach.of(move) | later.of(move) for move in chosen], changed).shares:
        if len(share.moves) != 1:
            continue
        move = chosen[share.moves[0]]
        callee = move.key.number
        comdat = {f for f in share.functions if (stock.get(f) or tried[f])[1]}
        rows = decisions[[question.row[1] for question in move.questions]]
        shared = (rows["caller_is_discardable"] > 0) & (rows["caller_is_local"] == 0)
        found.append(
            {
                "module": module.name,
                "sites": len(rows),
                "only_use": bool(rows["callee_disappears"].max() > 0),
                "cost": int(rows["cost_estimate"].max()),
                "callers": "COMDAT" if shared.all() else "mixed" if shared.any() else "own",
                "own": sum(changed[f] for f in share.functions - comdat - {callee}),
                "comdat": sum(changed[f] for f in comdat - {callee}),
                "callee": changed.get(callee, 0),
            }
        )
    return found


def _bytes(sizes: Sizes) -> Mapping[int, float]:
    return {number: float(size) for number, (size, _) in sizes.items()}


def run_record(options: argparse.Namespace) -> int:
    """Record module after module; a line each."""
    out: Path = options.out
    lines = results.json_lines(out, may_lack=True)
    done = {line["module"] for line in lines}
    corpus = store.load(options.corpus)
    with local_pool(corpus) as pool:
        for module in modules_of(corpus, options.projects, options.modules):
            if module.name not in done:
                trials = trials_of(pool, module)
                line = {"module": module.name, "trials": trials}
                results.add_lines(out, line)
                print(f"{module.name}: {len(trials)} callees", flush=True)
    return 0


def table(trials: list[dict[str, Any]]) -> results.Table:
    """Return mean changes by where the calls are, how many, and the largest cost."""
    groups: defaultdict[tuple[str, bool, int], list[dict[str, Any]]] = defaultdict(list)
    for one in trials:
        cost = next(cost for cost in _COSTS if one["cost"] <= cost)
        groups[one["callers"], not one["only_use"], cost].append(one)
    rows = []
    for (callers, several, cost), found in sorted(groups.items()):
        own, comdat, callee = (
            float(np.mean([one[part] for one in found])) for part in ("own", "comdat", "callee")
        )
        rows.append(
            [callers, "several" if several else "one", cost, len(found), own, comdat, callee]
            + [own + (comdat + callee) / copies for copies in _COPIES]
        )
    columns = [
        ("callers", "{}"),
        ("uses in the module", "{}"),
        ("cost up to", "{:d}"),
        ("callees", "{:d}"),
        ("modules' own callers", "{:+.0f}"),
        ("COMDAT callers", "{:+.0f}"),
        ("callee", "{:+.0f}"),
        *((f"{n} module{'s' if n > 1 else ''}", "{:+.1f}") for n in _COPIES),
    ]
    return results.table(columns, rows)


def run_table(options: argparse.Namespace) -> int:
    """Print the table, and write it to a result file if one is named."""
    lines = results.json_lines(options.out)
    found = table([trial for line in lines for trial in line["trials"]])
    about = (
        "COMDAT functions that the default inlines at none of their calls in a module: mean change"
        " in bytes if it inlines all, and what that comes to where so many modules do."
    )
    modules = sum(bool(line["trials"]) for line in lines)
    results.publish(options.json, about, {"callees": found}, modules=modules)
    return 0


def main() -> int:
    """Record, or print what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    steps = parser.add_subparsers(required=True)
    one = steps.add_parser("record", help="compile modules and keep what changed")
    one.add_argument("corpus", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--modules", type=int, default=24, help="most modules of a project")
    one.add_argument("--projects", nargs="+", default=[])
    one.set_defaults(run=run_record)
    two = steps.add_parser("table", help="print the means")
    two.add_argument("out", type=Path)
    two.add_argument("--json", type=Path)
    two.set_defaults(run=run_table)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
