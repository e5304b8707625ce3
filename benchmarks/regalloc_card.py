"""Write the figures of the model card of a policy about register allocation to its result file.

    nestor workload measure --policy POLICY … --corpus SPEED-PGO --json > profile.json
    nestor workload measure --policy POLICY … --corpus SPEED-CG --json > none.json
    python -m benchmarks.regalloc_card POLICY profile=profile.json none=none.json … [--json FILE]
    python -m benchmarks.tables

A word before a file says how the programs were built; a file may stand behind several. Of each
file the first policy is POLICY, and all others stand beside it. FILE is
``benchmarks/results/policy_POLICY.json`` if it is not named. All figures are read from the
measurements (docs/guide/workloads.md).
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.model_card import origin
from benchmarks.record import Table, table, with_interval
from benchmarks.result_tables import RESULTS
from nestor.compiler.toolchain import find
from nestor.policy.portfolio import PortfolioPolicy
from nestor.policy.spec import Policy
from nestor.problem.in_builds import problems_in_builds
from nestor.problem.registry import find_policy

_PERCENT: Final = "{:+.2f} %"
_COLUMNS: Final = ("instructions", "reads", "writes", "cost", "spills", "reloads", "text")


@dataclass(frozen=True)
class Measured:
    """One policy on programs that were built in one way."""

    how: str
    policy: str
    content: Mapping[str, Any]

    @property
    def programs(self) -> Mapping[str, Mapping[str, Any]]:
        """By name, worst first."""
        return {program["name"]: program for program in self.content["programs"]}


def read(words: Sequence[str]) -> list[Measured]:
    """Return what the arguments ``HOW=FILE`` hold, the policies of a file in their order."""
    found = []
    for word in words:
        how, _, path = word.partition("=")
        for content in json.loads(Path(path).read_text())["workloads"]:
            found.append(Measured(how, Path(content["policy"]).stem, content))
    return found


def summary(found: Sequence[Measured]) -> Table:
    """Return a row for each way of building and policy: the change of J."""
    titles = [("policy", "{}"), ("build", "{}"), ("programs", "{}")]
    titles += [("J, mean [95 % by project]", "{:+.2f} [{:+.2f}, {:+.2f}] %")]
    titles += [(title, _PERCENT) for title in ("median", "best", "worst")]
    rows = []
    for each in found:
        total = each.content["total"]
        mean = with_interval(total["mean_pct"], total["ci95"])
        numbers = [total[f"{name}_pct"] for name in ("median", "best", "worst")]
        worst = next(iter(each.programs))
        failures = len(each.content["failures"])
        rows.append([each.policy, each.how, total["programs"], mean, *numbers, worst, failures])
    return table([*titles, ("worst program", "{}"), ("failures", "{}")], rows)


def programs(found: Sequence[Measured]) -> Table:
    """Return a row for each program, worst first, with J by way of building."""
    first = found[0]
    rows = []
    for name, program in first.programs.items():
        rows.append([
            name, program["style"], _change(program, "J"),
            *(_change(each.programs.get(name, {}), "J") for each in found[1:]),
            *(_change(program, column) for column in _COLUMNS),
        ])  # fmt: skip
    titles = [("program", "{}"), ("style", "{}")]
    titles += [(f"J, {each.how}", _PERCENT) for each in found]
    titles += [(column, _PERCENT) for column in _COLUMNS]
    return table(titles, rows)


def _change(program: Mapping[str, Any], column: str) -> float | None:
    changes = program.get("change_pct") or {}
    value = changes.get(column)
    return None if value is None else float(value)


def weights(policy: Policy) -> Table | None:
    """Return the weights of a portfolio's members by feature; None for another policy."""
    if not isinstance(policy, PortfolioPolicy):
        return None
    members = policy.members()
    rows = [
        [f"`{feature}`", *(float(member.layers[0].weight[0, k]) for member in members)]
        for k, feature in enumerate(policy.features)
    ]
    titles = [(str(number), "{:+.2f}") for number in range(1, len(members) + 1)]
    return table([("feature", "{}"), *titles], rows)


def main() -> int:
    """Write the result file."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("policy")
    parser.add_argument("measured", nargs="+", metavar="HOW=FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    options = parser.parse_args()
    _, named = find_policy(options.policy, list(problems_in_builds(first="regalloc-eviction")))
    if named.policy is None:
        parser.error("the default heuristic has no card")
    found = read(options.measured)
    name = Path(options.policy).stem
    own = [each for each in found if each.policy == name]
    if not own:
        parser.error(f"no file has measurements of {name}")
    tables = {"origin": origin(named.policy), "summary": summary(found), "programs": programs(own)}
    if (members := weights(named.policy)) is not None:
        tables["members"] = members
    path = options.json or RESULTS / f"policy_{name}.json"
    about = (
        f"The policy {name} on held-out programs, against stock clang: per cent of"
        " J = instructions + data reads + data writes (callgrind)."
    )
    record.write(path, about, tables, machine.describe(find()))
    print(f"{path} is new.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
