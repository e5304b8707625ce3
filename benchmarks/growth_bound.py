"""Choose how far a policy may let callers grow, by validation programs as parts of larger ones.

    python -m benchmarks.growth_bound BENCH POLICY --out POLICY.safetensors

POLICY is a sum of features, such as ``nestor train inlining-size --learner cma`` makes, or trees,
as distillation makes them. It is put under every bound
(``nestor.problems.inlining_size.growth_bound``), and the validation programs are built under each
in all modes of the build ``copies``. The best on average is chosen of those under which no program
grows, whatever the mode, by more than the tolerances of distillation.
"""

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM, local_pool, policy_named
from nestor.build.build import find_build
from nestor.compiler import toolchain as toolchains
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.distil import Candidate, DistilSettings, choose
from nestor.learn.distil.validation import Validated, validation, verdict
from nestor.learn.programs import largest_programs
from nestor.learn.setup import as_network
from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.growth_bound import GrowthBound, bound_growth

MODES: Final = ("gc", "no-gc", "icf", "copies-3", "copies-10", "copies-100")


def limits_of(bound: GrowthBound | None) -> str:
    """Return the three limits as the tables name them."""
    return "none" if bound is None else f"{bound.own}, {bound.comdat}, {bound.several}"


def rows_of(bound: GrowthBound | None, found: Validated) -> list[list[Any]]:
    """Return a row for each program: its changes of linked bytes and of code by mode."""
    return [
        [program, limits_of(bound)]
        + [[100 * score[mode], 100 * found.details[program][mode]] for mode in MODES]
        for program, score in found.scores.items()
    ]


def _boundable(policy: Policy) -> MlpPolicy | TreesPolicy:
    return policy if isinstance(policy, TreesPolicy) else as_network(policy)


def main() -> int:
    """Print a row for the policy as it is and for each bound, and write the best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    parser.add_argument("--own", type=int, nargs="+", default=[0, 5, 10])
    parser.add_argument("--comdat", type=int, nargs="+", default=[80, 1000])
    parser.add_argument("--several", type=int, nargs="+", default=[0, 10])
    options = parser.parse_args()
    named = policy_named(options.policy)
    if named.policy is None:
        parser.error("the default heuristic has no file to put under a bound")
    start, settings = _boundable(named.policy), DistilSettings()
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("validation"))
    if not programs:
        parser.error("the corpus has no programs in the split validation")
    bounds = [
        GrowthBound(*each)
        for each in itertools.product(options.own, options.comdat, options.several)
    ]
    found, rows, verdicts = list[Candidate](), list[list[list[Any]]](), list[list[Any]]()
    with local_pool(corpus) as pool:
        changes = validation(pool, find_build(PROBLEM, "copies"), programs, Tally())
        for number, bound in enumerate([None, *bounds]):
            bounded = start if bound is None else bound_growth(start, bound)
            validated = changes(bounded)
            rows.append(rows_of(bound, validated))
            one = Candidate(number, 0.0, bounded, verdict(validated))
            result = one.verdict
            print(
                f"{bound or 'no bound'}: mean {100 * result.mean:+.2f} %, worst"
                f" {100 * result.worst:+.2f} %, worst of code {100 * result.detail:+.2f} %",
                flush=True,
            )
            percent = [100 * each for each in (result.mean, result.worst, result.detail)]
            verdicts.append([limits_of(bound), *percent])
            found.append(one)
    chosen = choose(found, settings.tolerance, settings.detail_tolerance)
    policy = chosen.policy
    write_atomically(options.out, bundle.to_bytes(policy))
    if options.json:
        columns = [("program", "{}"), ("own, COMDAT, several", "{}")]
        columns += [(mode, record.CHANGES) for mode in MODES]
        about = (
            "Validation programs under a policy as it is and under bounds on cost_estimate, against"
            " stock clang -Oz, also weighed as parts of larger programs."
        )
        per_cent = "{:+.2f} %"
        by_bound = [("own, COMDAT, several", "{}"), ("mean", per_cent)]
        by_bound += [("worst", per_cent), ("worst code", per_cent)]
        tables = {
            "bounds": record.table(by_bound, verdicts),
            "programs": record.table(columns, rows[0] + rows[chosen.number]),
        }
        record.write(options.json, about, tables, describe(toolchains.find()))
    print(f"{options.out}: {bundle.digest(policy)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NestorError as error:
        sys.exit(f"growth_bound: {error}")
