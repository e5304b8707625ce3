"""What a search by trials finds in held-out programs, by the number of trials of each function.

    python -m benchmarks.regalloc_search CORPUS --work FOLDER [--sample N] [--trials 60 250 1000]
        [--moves eviction priority both] [--policy shipped-eviction] [--jobs N]
        [--json benchmarks/results/regalloc.json]

CORPUS is a codegen corpus of the tier speed. Hot functions of at least 0.5 % of a program's static
cost are searched, from stock, or with ``--policy`` also from its alternatives; all others stay
stock's. Columns: mean and median over programs of the change of static cost. A row with the trials
"0" is the policy by itself. A run that was stopped goes on from the records in FOLDER.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.regalloc_hot import Hot, compile_only, hot_functions, open_pool, stock_costs
from benchmarks.regalloc_sweep import Journal, arguments, conclude, say, sweep
from nestor.corpus import store
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.regalloc.outcome import ModuleCost
from nestor.regalloc.plugin_flags import policy_option
from nestor.rollout.local_pool import LocalPool

_LEAST: Final = 0.005
"""Share of a program's cost from which a function is searched."""


def change(
    pool: LocalPool,
    hot: Sequence[Hot],
    costs: Mapping[str, ModuleCost],
    words: Sequence[str],
) -> tuple[float, int]:
    """Return the change of a program's static cost in per cent, and the trials it took."""
    by_unit: dict[str, list[Hot]] = defaultdict(list)
    for each in hot:
        by_unit[each.unit].append(each)
    percent, trials = 0.0, 0
    for unit, own in by_unit.items():
        only = {each.function.id for each in own}
        done = compile_only(pool.place, pool.corpus.module(unit), costs[unit], only, words)
        for each in own:
            now = done.functions.get(each.function.id)
            if now is not None:
                percent += 100 * each.share * (now.cost.cost / each.function.cost.cost - 1)
                trials += now.trials
    return percent, trials


def main() -> None:
    """Search, print and record."""
    parser = arguments(
        str(__doc__).partition("\n")[0], "programs, those of the least bitcode first"
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--trials", type=int, nargs="+", default=[60, 250, 1000])
    parser.add_argument("--moves", nargs="+", default=["eviction", "priority", "both"])
    parser.add_argument("--policy", default="shipped-eviction")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    sizes = {m.name: corpus.bitcode(m).stat().st_size for m in corpus.modules}
    having = sorted(corpus.programs_of("test"), key=lambda p: sum(sizes[n] for n in p.modules))
    programs = {program.name: program for program in having[: options.sample]}
    options.work.mkdir(parents=True, exist_ok=True)
    with open_pool(corpus, "regalloc-eviction", options.jobs) as pool:
        named = pool.problem.policy(options.policy)
        costs = stock_costs(pool, list(programs.values()))
        hot = {
            name: [each for each in hot_functions(program, costs) if each.share >= _LEAST]
            for name, program in programs.items()
        }

        def work(key: str) -> Any:
            start, moves, trials, name = key.split(" ")
            policy: NamedPolicy = named if start == named.name else DEFAULT
            words = [policy_option("eviction", policy, pool.place.files)]
            if int(trials):
                words.append(f"-nestor-allocation-search={trials}")
                words.append(f"-nestor-allocation-moves={moves}")
            return change(pool, hot[name], costs, words)

        ways = [("default", m, t) for m in options.moves for t in options.trials]
        ways += [(named.name, "eviction", t) for t in (0, *options.trials)]
        keys = [f"{s} {m} {t} {name}" for s, m, t in ways for name in programs]
        journal = Journal(options.work / "search.jsonl", f"{pool.plugin.digest} {named.digest}")
        results = sweep(journal, keys, work, options.jobs, say)
        plugin = pool.plugin
    rows = []
    for start, moves, trials in ways:
        found = [results[f"{start} {moves} {trials} {name}"] for name in programs]
        changes = [percent for percent, _ in found]
        middle, worst = statistics.median(changes), max(changes)
        spent = sum(tried for _, tried in found)
        rows.append([
            start, moves, trials, spent, len(changes), statistics.mean(changes), middle, worst,
        ])  # fmt: skip
    columns = [("from", "{}"), ("moves", "{}"), ("trials a function", "{:,}")]
    columns += [("trials in all", "{:,}"), ("programs", "{}")]
    columns += [(title, "{:+.2f} %") for title in ("mean", "median", "worst")]
    conclude("search", columns, rows, {}, plugin, options.json)


if __name__ == "__main__":
    main()
