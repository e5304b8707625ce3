"""Write the figures of a policy's model card to its result file.

    nestor evaluate --policy POLICY --mode gc no-gc icf --smoke --corpus CORPUS --json > own.json
    nestor evaluate --policy OTHER… --corpus CORPUS --json > others.json
    python -m benchmarks.model_card POLICY CORPUS own.json others.json [--json FILE]
        [--earlier FILE]
    python -m benchmarks.tables

FILE is ``benchmarks/results/policy_POLICY.json`` for a built-in policy, and must be named for a
file of one's own. All figures are read from the evaluations. POLICY is the first policy of the
first one; all others stand beside it. With ``--earlier``, policies that are not evaluated again
keep the rows that they have in that result file. ``benchmarks.tables`` fills the page of the card.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.record import Table, table
from benchmarks.tables import RESULTS
from nestor.change import change_pct
from nestor.corpus import store
from nestor.policy import bundle
from nestor.policy.linear import as_sum
from nestor.policy.spec import Policy
from nestor.problem.registry import find_policy, find_problem, problem_names

_WORST = 5
_MEANS = "{:+.2f} / {:+.2f}"
_PERCENT = "{:+.2f} %"


@dataclass(frozen=True)
class Column:
    """One policy in one link mode, with or without a summary: a column of the card's tables."""

    name: str
    programs: Mapping[str, Any]
    """By name."""
    groups: Mapping[str, Any]
    """By name."""
    failures: int
    smoke_tests_passed: int


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
            (evaluation["smoke"] or {}).get("passed", 0),
        )
        for content in contents
        for evaluation in content["evaluations"]
        if evaluation["policy"] == policy
    ]


def groups(found: Sequence[Column]) -> Table:
    """Return the means by language and style: linked bytes and, behind the stroke, code."""
    rows = [
        [name, group["programs"], *(_means(c.groups.get(name)) for c in found), _worst(group)]
        for name, group in found[0].groups.items()
        if group["worst"] is not None
    ]
    means = [(column.name, _MEANS) for column in found]
    last = (f"worst ({found[0].name})", "{}")
    return table([("group", "{}"), ("programs", "{:,}"), *means, last], rows)


def others(contents: Sequence[Any], earlier: Sequence[Sequence[Any]] = ()) -> Table:
    """Return every policy's means by group in the first mode, if possible without a summary.

    :param earlier: rows of a card that was written before.
    """
    mode = contents[0]["evaluations"][0]["link_mode"]
    names = list(dict.fromkeys(g["group"] for g in contents[0]["groups"]))
    found: dict[str, dict[str, Any]] = {}
    for content in contents:
        for group in content["groups"]:
            if group["link_mode"] == mode:
                found.setdefault(group["policy"], {}).setdefault(group["group"], group)
    rows = [
        [policy, *(_means(own.get(name)) for name in names), _worst(own[names[0]])]
        for policy, own in found.items()
    ]
    rows += [list(row) for row in earlier if row[0] not in found]
    means = [(name, _MEANS) for name in names]
    return table([(f"policy ({mode})", "{}"), *means, ("worst", "{}")], rows)


def programs(found: Sequence[Column]) -> Table:
    """Return a row per program and a column per way of building, worst first."""
    first = found[0]
    rows: list[list[Any]] = []
    for name, program in first.programs.items():
        if program["stock"] is None or program["policy"] is None:
            cells: list[Any] = ["failed", *[None] * (len(found) + 1)]
        else:
            text = change_pct(program["stock"]["text"], program["policy"]["text"])
            changes = (c.programs[name]["linked_change_pct"] for c in found)
            shown = ("failed" if change is None else change for change in changes)
            cells = [program["stock"]["linked"], *shown, text]
        rows.append([name, program["style_group"], *cells])
    titles = [("program", "{}"), ("group", "{}"), ("stock bytes", "{:,}")]
    changes_by = [(column.name, _PERCENT) for column in found]
    return table([*titles, *changes_by, (f"text ({first.name})", _PERCENT)], rows)


def worst(found: Sequence[Column]) -> Table:
    """Return the largest regressions over all ways of building."""
    rows = [
        (program["linked_change_pct"], name, column.name)
        for column in found
        for name, program in column.programs.items()
        if program["linked_change_pct"] is not None
    ]
    largest = [[f"{name}, {way}", change] for change, name, way in sorted(rows)[: -_WORST - 1 : -1]]
    return table([("program and way of building", "{}"), ("change", _PERCENT)], largest)


def worst_of_never(contents: Sequence[Any], earlier: Mapping[str, Any] | None) -> float | None:
    """Return the largest change of any program, small ones included, if nothing is inlined.

    None unless the policy ``never`` is among those evaluated, now or for the card ``earlier``.
    """
    changes = [
        program["linked_change_pct"]
        for content in contents
        for evaluation in content["evaluations"]
        if evaluation["policy"] == "never"
        for program in evaluation["programs"]
    ]
    kept: float | None = (earlier or {}).get("never_worst_of_all_pct")
    return max((change for change in changes if change is not None), default=kept)


def origin(policy: Policy) -> Table:
    """Return what the policy is and what made it."""
    provenance: Mapping[str, Any] = dict(policy.metadata.provenance)
    rows = [
        ["digest", f"`{bundle.digest(policy)}`"],
        ["kind", f"{policy.metadata.kind}, {policy.parameters:,} numbers"],
        [f"{len(policy.features)} features", ", ".join(f"`{f}`" for f in policy.features)],
    ]
    if (logit := as_sum(policy)) is not None:
        rows.append(["logit", f"`{logit}`"])
    if "growth bound" in provenance:
        bound = ", ".join(f"{name} {limit}" for name, limit in provenance["growth bound"].items())
        rows.append(["sum", f"`{provenance['sum']}`"])
        rows.append(["limits of cost_estimate", bound])
    if "only call" in provenance:
        most = ", ".join(f"{name} {limit}" for name, limit in provenance["only call"].items())
        rows.append(["only calls are inlined up to", most])
    if "trials" in provenance:
        least = ", ".join(f"{name} {limit}" for name, limit in provenance["trials"].items())
        rows.append(["inlining trials must save", least])
    if "caller trials" in provenance:
        most = ", ".join(f"{name} {limit}" for name, limit in provenance["caller trials"].items())
        rows.append(["trials in one caller", most])
    if "what stays" in provenance:
        rows.append(["functions that stay", f"left to the {provenance['what stays']}"])
    names = ("learner", "seed", "corpus", "compiler", "plugin", "nestor")
    rows += [[name, f"`{provenance[name]}`"] for name in names if name in provenance]
    others = ("take", "leave", "rounds", "leaves", "training programs", "chosen by", "llvm")
    rows += [[name, str(provenance[name])] for name in others if name in provenance]
    if "settings" in provenance:
        rows.append(["settings", f"`{json.dumps(provenance['settings'], sort_keys=True)}`"])
    return table([("", "{}"), ("value", "{}")], rows)


def _means(group: Any) -> list[float] | None:
    if group is None or group["linked_geomean_pct"] is None:
        return None
    return [group["linked_geomean_pct"], group["text_geomean_pct"]]


def _worst(group: Any) -> str | None:
    if group["worst"] is None:
        return None
    return f"{group['worst']['name']} {group['worst']['linked_change_pct']:+.2f} %"


def main() -> int:
    """Write the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("policy")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("evaluation", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    parser.add_argument("--earlier", type=Path, metavar="FILE", help="a result file with others")
    options = parser.parse_args()
    problem, named = find_policy(options.policy, problem_names())
    policy = named.policy
    if policy is None:
        parser.error("the default heuristic has no card")
    if options.json is None and options.policy not in find_problem(problem).builtins.names:
        parser.error("name the result file with --json")
    contents = [json.loads(path.read_text()) for path in options.evaluation]
    name = contents[0]["evaluations"][0]["policy"]
    found = columns(contents, name)
    earlier = json.loads(options.earlier.read_text()) if options.earlier else None
    tables = {
        "origin": origin(policy),
        "groups": groups(found),
        "others": others(contents, earlier["tables"]["others"]["rows"] if earlier else ()),
        "programs": programs(found),
        "worst": worst(found),
    }
    path = options.json or RESULTS / f"policy_{options.policy}.json"
    corpus = store.load(options.corpus)
    record.write(
        path,
        f"The policy {name} on the held-out programs of a corpus, against stock clang"
        f" {corpus.level}: per cent of linked bytes / of code.",
        tables,
        {"llvm": corpus.toolchain},
        failures=sum(column.failures for column in found),
        smoke_tests_passed=max(column.smoke_tests_passed for column in found),
        never_worst_of_all_pct=worst_of_never(contents, earlier),
    )
    print(f"{path} is new.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
