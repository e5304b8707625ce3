"""What would inlining for speed gain if it were known how often each call runs?

    python -m benchmarks.speed_ceiling PLAIN COUNTED [--take 0.8] [--leave 0] > F
    python -m benchmarks.speed_policies 'inlined=F' 'kept too=G' --table ceiling --json RESULT

A policy learned from profiles predicts what inlining a call saves of a run for a per cent of the
code (``nestor train inlining-speed --learner profile``). Here the answers go by the counts
themselves, through the limits and the restraint of that policy, so that nothing has to be
predicted. PLAIN is a corpus with workloads, COUNTED the same with profiles ('nestor corpus
profile'). Every program is built under its own answers, run, and compared with stock, as ``nestor
workload measure`` does, whose JSON is printed.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Final

from nestor.api.workplace import open_corpus, open_pool
from nestor.corpus.model import Program
from nestor.evaluate.workloads import WorkloadEvaluation, measure_workloads, require_workloads
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.profile import counted_benefits, counted_rollouts
from nestor.learn.benefit.model import Limits
from nestor.learn.programs import default_rollouts, units_of
from nestor.policy.branches import one_tree
from nestor.policy.names import DEFAULT
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import Pool
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Rollout
from nestor.problems.inlining_size.search.overrides import Key, Overrides, to_text
from nestor.problems.inlining_speed.restraint import restrained

NAME: Final = "inlining-speed"
PROBLEM: Final = find_problem(NAME)


def restraint() -> TreesPolicy:
    """Return what is below 0 where policies learned from profiles keep to stock, else 0."""
    packaged = PROBLEM.policy("shipped-speed").policy
    assert isinstance(packaged, TreesPolicy)
    return restrained(one_tree(packaged, 0.0))


def answers(
    program: Program,
    plain: Mapping[str, Rollout],
    counted: Mapping[str, Rollout],
    keeps: TreesPolicy,
    limits: Limits,
) -> Overrides:
    """Return the answers other than stock's that the counts of ``program`` ask for, by site.

    A site in a function of several modules is inlined if one of them asks for it.
    """
    found: dict[Key, bool] = {}
    for log, benefits in counted_benefits(PROBLEM, program, plain, counted):
        sites = log.decisions[benefits.rows]
        density = benefits.gain / benefits.cost
        free = keeps.logits(log.rows(keeps.features)[benefits.rows]) == 0
        inlined = sites[log.default_column] != 0
        for site in sites["site"][free & inlined & (density < limits.leave)].tolist():
            found.setdefault(Key("site-only", site % 2**64), False)
        for site in sites["site"][free & ~inlined & (density > limits.take)].tolist():
            found[Key("site-only", site % 2**64)] = True
    return found


def measured(pool: Pool, program: Program, chosen: Overrides, folder: Path) -> WorkloadEvaluation:
    """Return what ``program`` executes under the answers ``chosen``, against stock."""
    text = to_text(chosen)
    (result,) = measure_workloads(pool, [program], [DEFAULT], folder, overrides=text)
    print(f"{program.name}: {len(chosen)} answers, {result.changes()}", file=sys.stderr)
    return result


def main() -> int:
    """Print what ``nestor workload measure --json`` would."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("plain", type=Path, metavar="PLAIN")
    parser.add_argument("counted", type=Path, metavar="COUNTED")
    parser.add_argument("--take", type=float, default=0.8, help="inline above this density")
    parser.add_argument("--leave", type=float, default=0.0, help="do not inline below this one")
    parser.add_argument("--split", nargs="+", default=["train", "validation"])
    parser.add_argument("--work", type=Path, default=Path("ceiling"), help="takes measurements")
    options = parser.parse_args()
    corpus, other = open_corpus(options.plain), open_corpus(options.counted)
    ran = {program.name for program in other.programs}
    chosen = [p for p in corpus.programs if corpus.splits[p.project] in options.split]
    programs = require_workloads(corpus, [p for p in chosen if p.name in ran])
    limits, keeps = Limits(options.take, options.leave), restraint()
    with open_pool(corpus, NAME) as pool, open_pool(other, NAME) as with_counts:
        plain = default_rollouts(pool, units_of(corpus, programs), Tally())
        counted = counted_rollouts(with_counts, units_of(other, programs), plain, Tally())
        results = [
            measured(pool, p, answers(p, plain, counted, keeps, limits), options.work)
            for p in programs
        ]
    every = replace(
        results[0],
        programs=tuple(chain.from_iterable(result.programs for result in results)),
        failures=tuple(chain.from_iterable(result.failures for result in results)),
    )
    print(json.dumps({"workloads": [every.to_json() | {"limits": asdict(limits)}]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
