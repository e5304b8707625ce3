"""Write the model card of a policy: what it was made from, what it does, where it fails.

    nestor evaluate --policy POLICY --mode gc no-gc icf --corpus CORPUS --json > own.json
    nestor evaluate --policy OTHER… --corpus CORPUS --json > others.json
    python -m benchmarks.model_card POLICY CORPUS own.json others.json > model-card.md

Everything in the card is read from these files. POLICY is the first policy of the first one; all
others stand beside it.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestor.rollout.policy_file import policy_file

from nestor.corpus import store
from nestor.corpus.model import Corpus, Split
from nestor.policy import bundle
from nestor.policy.linear import as_sum
from nestor.policy.spec import Policy

_WORST = 5

_INTRODUCTION = """
Decides inlining for size (`-Oz`) in clang {clang}. It leaves the default heuristic's answer where
it has learned that this saves linked bytes (docs/studies/policies.md says how), and nowhere where
a feature
is outside the range of its training data. It changes sizes and nothing else: a program means the
same under every policy.
"""

_LIMITS = """
## Limits
- Trained at -Oz on x86-64 with clang {clang}, and only there does it mean anything. Another LLVM
  may offer other features; the plugin refuses a policy that needs one that is missing.
- The objective is loadable bytes (code, constants, unwind tables) of programs linked by lld with
  function sections. It is not speed, and code alone may grow where unwind tables shrink more.
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


@dataclass(frozen=True)
class Column:
    """One policy, link mode and state of knowledge: a column of the card's tables."""

    name: str
    programs: Mapping[str, Any]
    """By name."""
    groups: Mapping[str, Any]
    """By name."""
    failures: int


def columns(contents: Sequence[Any], policy: str) -> list[Column]:
    """Return the columns of ``policy`` in the evaluations' files."""
    return [
        Column(
            evaluation["link_mode"] + (", summary" if evaluation["summary"] else ""),
            {p["name"]: p for p in evaluation["programs"]},
            {
                g["group"]: g
                for g in content["groups"]
                if (g["policy"], g["link_mode"]) == (policy, evaluation["link_mode"])
            },
            len(evaluation["failures"]),
        )
        for content in contents
        for evaluation in content["evaluations"]
        if evaluation["policy"] == policy
    ]


def results(found: Sequence[Column]) -> Iterator[str]:
    """Yield a row per program and a column per way of building, worst first."""
    first = found[0]
    names = " | ".join(column.name for column in found)
    yield f"| program | group | stock bytes | {names} | text ({first.name}) |"
    yield "|---|---|---:|" + "---:|" * (len(found) + 1)
    for name, program in first.programs.items():
        if program["stock"] is None or program["policy"] is None:
            yield f"| {name} | {program['style_group']} | failed |" + " |" * (len(found) + 1)
            continue
        text = 100 * (program["policy"]["text"] / program["stock"]["text"] - 1)
        changes = " | ".join(_percent(c.programs[name]["linked_change_pct"]) for c in found)
        yield (
            f"| {name} | {program['style_group']} | {program['stock']['linked']:,} | {changes}"
            f" | {_percent(text)} |"
        )


def groups(found: Sequence[Column]) -> Iterator[str]:
    """Yield the means by language and style: linked bytes and, behind the stroke, code."""
    yield f"| group | programs | {' | '.join(c.name for c in found)} | worst ({found[0].name}) |"
    yield "|---|---:|" + "---:|" * len(found) + "---|"
    for name, group in found[0].groups.items():
        if group["worst"] is not None:
            cells = " | ".join(_means(c.groups.get(name)) for c in found)
            worst = group["worst"]
            yield (
                f"| {name} | {group['programs']} | {cells}"
                f" | {worst['name']} {_percent(worst['linked_change_pct'])} |"
            )


def beside(contents: Sequence[Any]) -> Iterator[str]:
    """Yield every policy's means by group, in the first mode and without summaries if it can be."""
    mode = contents[0]["evaluations"][0]["link_mode"]
    names = list(dict.fromkeys(g["group"] for g in contents[0]["groups"]))
    found: dict[str, dict[str, Any]] = {}
    for content in contents:
        for group in content["groups"]:
            if group["link_mode"] == mode:
                found.setdefault(group["policy"], {}).setdefault(group["group"], group)
    yield f"| policy ({mode}) | {' | '.join(names)} | worst |"
    yield "|---|" + "---:|" * len(names) + "---|"
    for policy, own in found.items():
        worst = own[names[0]]["worst"]
        cells = " | ".join(_means(own.get(name)) for name in names)
        yield f"| {policy} | {cells} | {worst['name']} {_percent(worst['linked_change_pct'])} |"


def worst(found: Sequence[Column]) -> Iterator[str]:
    """Yield the largest regressions over all ways of building."""
    rows = [
        (program["linked_change_pct"], name, column.name)
        for column in found
        for name, program in column.programs.items()
        if program["linked_change_pct"] is not None
    ]
    for change, name, way in sorted(rows, reverse=True)[:_WORST]:
        yield f"- {name}, {way}: {_percent(change)}"


def origin(policy: Policy) -> Iterator[str]:
    """Yield what made the policy."""
    known: Mapping[str, Any] = dict(policy.metadata.provenance)
    kind = policy.metadata.kind
    yield f"- digest `{bundle.digest(policy)}`; {kind}, {policy.parameters:,} numbers"
    yield f"- {len(policy.features)} features: {', '.join(f'`{f}`' for f in policy.features)}"
    if (logit := as_sum(policy)) is not None:
        yield f"- logit: `{logit}` (`transform` log in docs/reference/formats.md)"
    for name in ("learner", "seed", "corpus", "compiler", "plugin", "nestor"):
        if name in known:
            yield f"- {name}: `{known[name]}`"
    if "settings" in known:
        yield f"- settings: `{json.dumps(known['settings'], sort_keys=True)}`"


def _percent(change: float | None) -> str:
    return "failed" if change is None else f"{change:+.2f} %"


def _means(group: Any) -> str:
    if group is None or group["linked_geomean_pct"] is None:
        return "–"
    return f"{group['linked_geomean_pct']:+.2f} / {group['text_geomean_pct']:+.2f}"


def main() -> int:
    """Print the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("policy")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("evaluation", type=Path, nargs="+")
    options = parser.parse_args()
    policy = policy_file(options.policy).policy
    if policy is None:
        parser.error("the default heuristic has no card")
    corpus = store.load(options.corpus)
    contents = [json.loads(path.read_text()) for path in options.evaluation]
    name = contents[0]["evaluations"][0]["policy"]
    found = columns(contents, name)
    failures = sum(column.failures for column in found)
    introduction = _INTRODUCTION.format(clang=corpus.toolchain)
    sections = {
        f"# Model card: the policy `{name}`": [introduction],
        "## Origin": origin(policy),
        "## Held-out programs by group": [
            "Per cent of linked bytes / of code against stock `clang -Oz`, geometric means over the"
            " programs of at least 80 KB.\n",
            *groups(found),
        ],
        "## Beside other policies": beside(contents),
        "## Held-out programs": [*results(found), f"\n{failures} failures."],
        "## Worst": worst(found),
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
