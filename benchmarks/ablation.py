"""What each part of a distilled policy is worth: retrain without it, on the same trials.

    python -m benchmarks.ablation CORPUS RUN [--json FILE]

RUN is the folder of a distillation (``nestor train inlining-size --learner distil``). Nothing is
searched again: every variant is fitted once to the trials of RUN, followed with the same caution
and judged by the linked bytes of the corpus's validation programs: the mean with ``--gc-sections``,
the same with summaries, and the worst program in any link mode.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool
from nestor.corpus import store
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.distil import DistilSettings
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings, Kind
from nestor.learn.distil.gain_network import Network
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.trials import Trials, join, read
from nestor.learn.distil.validation import WITH_SUMMARY, validation
from nestor.learn.programs import largest_programs

Test = Callable[[str], bool]

FEATURES = PROBLEM.features.program
"""Those of distillation."""

CAUTION = DistilSettings.cautions[0]

GROUPS: dict[str, Test] = {
    "the program's summary": lambda name: name.startswith("program_"),
    "linkage and uses": lambda name: name
    in (
        "callee_is_local", "callee_is_discardable", "callee_has_comdat", "callee_uses",
        "callee_call_uses", "callee_address_taken", "callee_disappears", "caller_is_local",
        "caller_is_discardable", "caller_call_uses", "calls_to_callee_in_caller",
    ),
    "what is in the callee": lambda name: name
    in (
        "callee_instructions", "callee_code_size", "callee_calls", "callee_invokes",
        "callee_landing_pads", "callee_allocas", "callee_loads", "callee_stores",
        "callee_returns", "callee_is_leaf", "callee_may_throw", "callee_arguments",
    ),
    "what is in the caller": lambda name: name
    in (
        "caller_instructions", "caller_code_size", "caller_calls", "caller_landing_pads",
        "caller_may_throw",
    ),
    "the call itself": lambda name: name.startswith(("call_", "constant_", "pointer_")),
}  # fmt: skip
"""Features that are left out together."""


def variants() -> dict[str, tuple[Kind, tuple[str, ...], GainSettings]]:
    """Return what is compared: kind of model, features, settings."""
    own = [name for name in FEATURES if name not in features_of_llvm()]
    every, settings = FEATURES, GainSettings(repeats=1, caution=CAUTION)
    bold = replace(settings, caution=0.0)
    found: dict[str, tuple[Kind, tuple[str, ...], GainSettings]] = {
        "everything": (Trees(), every, settings),
        "a network instead of trees": (Network(), every, settings),
        "no caution": (Trees(), every, bold),
        "no caution, no least gain": (Trees(), every, replace(bold, least=0.0)),
        "no bound on callees": (Trees(), every, replace(settings, outliers=0.0)),
        "only LLVM's features": (Trees(), tuple(n for n in every if n not in own), settings),
    }
    for group, belongs in GROUPS.items():
        kept = tuple(name for name in every if not belongs(name))
        found[f"without {group}"] = (Trees(), kept, settings)
    return found


def features_of_llvm() -> tuple[str, ...]:
    """Return those of the features that LLVM's own advisor offers."""
    return FEATURES[: FEATURES.index("callee_is_local")]


def trials_of(run: Path) -> Trials:
    """Return all trials of a run."""
    found = [read(path) for path in sorted((run / "trials").glob("*.safetensors"))]
    return join([trials for trials in found if trials is not None])


def main() -> int:
    """Print a row per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    trials = trials_of(options.run)
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("validation"))
    if not programs:
        parser.error("the corpus has no programs in the split validation")
    rows: list[list[Any]] = []
    with local_pool(corpus) as pool:
        changes_under = validation(pool, LINK, programs, Tally())
        for name, (kind, features, settings) in variants().items():
            data = gain_model.rows(trials, features, PROBLEM, settings, 0)
            across = gain_model.predict_across(kind, data, settings, 0)
            fitted = gain_model.fit(kind, data, across, 0)
            policy = gain_model.policy(kind, fitted, data, features, PROBLEM, settings)
            changes = [dict(columns) for columns in changes_under(policy).scores.values()]
            # A policy that reads no summary makes the same builds with one as without.
            summarised = [columns.get(WITH_SUMMARY, columns["gc"]) for columns in changes]
            correlation = float(np.corrcoef(data.y, across[0])[0, 1])
            alone = 100 * float(np.mean([columns["gc"] for columns in changes]))
            with_summary = 100 * float(np.mean(summarised))
            worst = 100 * max(max(columns.values()) for columns in changes)
            rows.append([name, correlation, alone, with_summary, worst])
            print(
                f"{name:32} correlation {correlation:.3f}  gc {alone:+.2f} %"
                f"  with a summary {with_summary:+.2f} %  worst {worst:+.2f} %",
                flush=True,
            )
        machine = describe(pool.plugin.toolchain)
    if options.json:
        about = (
            "What each group of features, caution and the kind of model are worth, on the"
            f" {len(programs)} validation programs: one fit to {len(trials):,} trials with a"
            f" caution of {CAUTION}; mean change of linked bytes, and the worst program over all"
            " link modes."
        )
        columns = [
            ("variant", "{}"), ("correlation across projects", "{:.3f}"), ("gc", "{:+.2f} %"),
            ("gc, summary", "{:+.2f} %"), ("worst", "{:+.2f} %"),
        ]  # fmt: skip
        record.write(options.json, about, {"variants": record.table(columns, rows)}, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
