"""Choose how far a policy may let callers grow, by validation programs as parts of larger ones.

    python -m benchmarks.growth_bound BENCH POLICY --out POLICY.safetensors

POLICY is a sum of features, such as ``nestor train inlining-size --learner cma`` makes. It is put
under every bound (``nestor.problems.inlining_size.growth_bound``), and the validation programs are
built under each in all modes of the build ``copies``. The best on average is written of those under
which no program grows, whatever the mode, by more than the tolerances of distillation.
"""

import argparse
import itertools
import sys
from pathlib import Path

from benchmarks.pool import PROBLEM, local_pool, policy_named
from nestor.build.build import find_build
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.distil import Candidate, DistilSettings, choose
from nestor.learn.distil.validation import validation, verdict
from nestor.learn.programs import largest_programs
from nestor.learn.setup import as_network
from nestor.policy import bundle
from nestor.problems.inlining_size.growth_bound import GrowthBound, bound_growth


def main() -> int:
    """Print a row for the policy as it is and for each bound, and write the best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--own", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--comdat", type=int, nargs="+", default=[80, 1000])
    parser.add_argument("--several", type=int, nargs="+", default=[0, 10])
    options = parser.parse_args()
    named = policy_named(options.policy)
    if named.policy is None:
        parser.error("the default heuristic has no file to put under a bound")
    start, settings = as_network(named.policy), DistilSettings()
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("validation"))
    if not programs:
        parser.error("the corpus has no programs in the split validation")
    bounds = [
        GrowthBound(*each)
        for each in itertools.product(options.own, options.comdat, options.several)
    ]
    found = []
    with local_pool(corpus) as pool:
        changes = validation(pool, find_build(PROBLEM, "copies"), programs, Tally())
        for number, bound in enumerate([None, *bounds]):
            policy = start if bound is None else bound_growth(start, bound)
            one = Candidate(number, 0.0, policy, verdict(changes(policy)))
            result = one.verdict
            print(
                f"{bound or 'no bound'}: mean {100 * result.mean:+.2f} %, worst"
                f" {100 * result.worst:+.2f} %, worst of code {100 * result.detail:+.2f} %",
                flush=True,
            )
            found.append(one)
    chosen = choose(found, settings.tolerance, settings.detail_tolerance)
    write_atomically(options.out, bundle.to_bytes(chosen.policy))
    print(f"{options.out}: {bundle.digest(chosen.policy)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NestorError as error:
        sys.exit(f"growth_bound: {error}")
