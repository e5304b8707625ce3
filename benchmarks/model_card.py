"""Write the model card of a policy: what it was made from, what it does, where it fails.

    nestor evaluate --policy POLICY --mode gc no-gc icf --corpus CORPUS --json > evaluation.json
    python -m benchmarks.model_card POLICY CORPUS evaluation.json > docs/model-card.md

Everything in the card is read from these files; POLICY is the first policy of the evaluation.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nestor.corpus import store
from nestor.corpus.model import Corpus, Split
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.rollout.policy_file import policy_file

_WORST = 5

_INTRODUCTION = """
Decides inlining for size (`-Oz`) in clang {clang}. It leaves the default heuristic's answer where
a model of the linked bytes that this saves, less a multiple of the model's error on projects that
it has not seen, is positive; and nowhere where a feature is outside the range of its training data.
It changes sizes and nothing else: a program means the same under every policy.
"""

_LIMITS = """
## Limits
- Trained at -Oz on x86-64 with clang {clang}, and only there does it mean anything. Another LLVM
  may offer other features; the plugin refuses a policy that needs one that is missing.
- The objective is loadable bytes (code, constants, unwind tables) of programs linked by lld with
  function sections, in three link modes at once. It is not speed, and code alone may grow where
  unwind tables shrink more.
- Programs were linked from Debian's sources on one machine; styles of C++ that no training project
  has are where it can err most, and the tables name them.
- `nestor guard` lists, for your own program, the modules that are better left to stock.
"""


def projects(corpus: Corpus, split: Split) -> Iterator[str]:
    """Yield a table of the projects of one split."""
    yield "| project | version | licence | language | style | modules |"
    yield "|---|---|---|---|---|---|"
    for project in corpus.projects:
        if corpus.splits[project.name] == split:
            own = [module for module in corpus.modules if module.project == project.name]
            languages = "/".join(sorted({module.language.upper() for module in own}))
            yield (
                f"| {project.name} | {project.version} | {project.licence} | {languages}"
                f" | {project.style} | {len(own)} |"
            )


def results(evaluations: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a row per program and a column per link mode, worst first."""
    modes = [evaluation["link_mode"] for evaluation in evaluations]
    yield f"| program | group | stock bytes | {' | '.join(modes)} | text ({modes[0]}) |"
    yield "|---|---|---:|" + "---:|" * (len(modes) + 1)
    by_mode = [{p["name"]: p for p in evaluation["programs"]} for evaluation in evaluations]
    for name, first in by_mode[0].items():
        if first["stock"] is None or first["policy"] is None:
            yield f"| {name} | {first['style_group']} | failed |" + " |" * (len(modes) + 1)
            continue
        text = 100 * (first["policy"]["text"] / first["stock"]["text"] - 1)
        changes = " | ".join(_percent(programs[name]["linked_change_pct"]) for programs in by_mode)
        yield (
            f"| {name} | {first['style_group']} | {first['stock']['linked']:,} | {changes}"
            f" | {_percent(text)} |"
        )


def groups(found: list[dict[str, Any]], policy: str) -> Iterator[str]:
    """Yield the means by language and style."""
    yield "| group | link mode | programs | linked | text | worst |"
    yield "|---|---|---:|---:|---:|---|"
    for group in found:
        if group["policy"] == policy and group["worst"] is not None:
            worst = group["worst"]
            yield (
                f"| {group['group']} | {group['link_mode']} | {group['programs']}"
                f" | {_percent(group['linked_geomean_pct'])}"
                f" | {_percent(group['text_geomean_pct'])}"
                f" | {worst['name']} {_percent(worst['linked_change_pct'])} |"
            )


def worst(evaluations: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the largest regressions over all link modes."""
    rows = [
        (p["linked_change_pct"], p["name"], evaluation["link_mode"])
        for evaluation in evaluations
        for p in evaluation["programs"]
        if p["linked_change_pct"] is not None
    ]
    for change, name, mode in sorted(rows, reverse=True)[:_WORST]:
        yield f"- {name}, {mode}: {_percent(change)}"


def origin(policy: Policy) -> Iterator[str]:
    """Yield what made the policy."""
    known: Mapping[str, Any] = dict(policy.metadata.provenance)
    kind = policy.metadata.kind
    yield f"- digest `{bundle.digest(policy)}`; {kind}, {policy.parameters:,} numbers"
    yield f"- {len(policy.features)} features: {', '.join(f'`{f}`' for f in policy.features)}"
    for name in ("learner", "seed", "corpus", "compiler", "plugin", "nestor"):
        if name in known:
            yield f"- {name}: `{known[name]}`"
    if "settings" in known:
        yield f"- settings: `{json.dumps(known['settings'], sort_keys=True)}`"


def _percent(change: float | None) -> str:
    return "failed" if change is None else f"{change:+.2f} %"


def main() -> int:
    """Print the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("policy")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("evaluation", type=Path)
    options = parser.parse_args()
    policy = policy_file(options.policy).policy
    if policy is None:
        parser.error("the default heuristic has no card")
    corpus = store.load(options.corpus)
    content = json.loads(options.evaluation.read_text())
    name = content["evaluations"][0]["policy"]
    evaluations = [e for e in content["evaluations"] if e["policy"] == name]
    failures = sum(len(e["failures"]) for e in evaluations)
    sections = {
        f"# Model card: the policy `{name}`": [_INTRODUCTION.format(clang=corpus.toolchain)],
        "## Origin": origin(policy),
        "## Held-out programs by group": [
            "Geometric means over the programs that are not tiny, against stock `clang -Oz`.\n",
            *groups(content["groups"], name),
        ],
        "## Held-out programs": [*results(evaluations), f"\n{failures} failures."],
        "## Worst": worst(evaluations),
        "## Training projects": projects(corpus, "train"),
        "## Validation projects": projects(corpus, "validation"),
        "## Held-out projects": projects(corpus, "test"),
    }
    for title, lines in sections.items():
        print(title, *lines, "", sep="\n")
    print(_LIMITS.format(clang=corpus.toolchain).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
