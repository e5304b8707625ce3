"""What each part of a distilled policy is worth: retrain without it, on the same trials.

    python -m benchmarks.ablation CORPUS RUN [--json]

RUN is the folder of a distillation (``nestor train inlining-size --learner distil``). Nothing is
searched again: every variant is fitted once to the trials of RUN, followed with the same caution
and judged by the linked bytes of the corpus's validation programs: the mean with ``--gc-sections``,
the same with summaries, and the worst program in any link mode.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.learn import gain_model
from nestor.learn.distil import DistilSettings
from nestor.learn.experience import Tally
from nestor.learn.features import DISTIL_FEATURES
from nestor.learn.gain_model import GainSettings, Kind
from nestor.learn.gain_network import Network
from nestor.learn.gain_trees import Trees
from nestor.learn.searches import largest_programs
from nestor.learn.trials import Trials, join, read
from nestor.learn.validation import TOLD, judge
from nestor.progress import silent
from nestor.rollout.pool import Pool

Test = Callable[[str], bool]

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
    own = [name for name in DISTIL_FEATURES if name not in features_of_llvm()]
    every, settings = DISTIL_FEATURES, GainSettings(repeats=1, caution=CAUTION)
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
    return DISTIL_FEATURES[: DISTIL_FEATURES.index("callee_is_local")]


def trials_of(run: Path) -> Trials:
    """Return all trials of a run."""
    found = [read(path) for path in sorted((run / "trials").glob("*.safetensors"))]
    return join([trials for trials in found if trials is not None])


def main() -> int:
    """Print a row per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    trials = trials_of(options.run)
    corpus = store.load(options.corpus)
    programs = largest_programs(corpus.programs_of("validation"))
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="nestor-ablation-") as folder,
        Pool(corpus, ready_plugin(None, silent)) as pool,
    ):
        changes_under = judge(pool, programs, Tally(), Path(folder))
        for name, (kind, features, settings) in variants().items():
            data = gain_model.rows(trials, features, settings, 0)
            across = gain_model.predict_across(kind, data, settings, 0)
            fitted = gain_model.fit(kind, data, across, 0)
            changes = changes_under(gain_model.policy(kind, fitted, data, features, settings))
            # A policy that reads no summary makes the same builds with one as without.
            told = [columns.get(TOLD, columns["gc"]) for columns in changes.values()]
            row = {
                "variant": name,
                "correlation": float(np.corrcoef(data.y, across[0])[0, 1]),
                "caution": settings.caution,
                "gc_change_pct": 100 * float(np.mean([c["gc"] for c in changes.values()])),
                "gc_told_change_pct": 100 * float(np.mean(told)),
                "worst_change_pct": 100 * max(max(c.values()) for c in changes.values()),
            }
            rows.append(row)
            if not options.json:
                print(
                    f"{name:32} correlation {row['correlation']:.3f}"
                    f"  gc {row['gc_change_pct']:+.2f} %  with a summary"
                    f" {row['gc_told_change_pct']:+.2f} %  worst {row['worst_change_pct']:+.2f} %",
                    flush=True,
                )
    if options.json:
        json.dump({"trials": len(trials), "programs": [p.name for p in programs], "rows": rows},
                  sys.stdout, indent=2)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
