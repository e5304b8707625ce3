"""Up to what callee is a function's only call to be inlined? Programs under limits of the rule.

    python -m benchmarks.only_call_limits judge BENCH TREES.safetensors RESULTS.jsonl [--modules N]
    python -m benchmarks.only_call_limits table oz=RESULTS.jsonl os=RESULTS-OS.jsonl [--json FILE]

``judge`` builds the training and validation programs of BENCH with a summary, under the policy in
TREES, as distillation has made it, and under TREES with the rule of
``nestor.problems.inlining_size.summary_rules`` at each of its limits. It goes on where it was
stopped; results are a line a program. What is chosen by them is for ``benchmarks.only_call make``.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.only_call import ANY_SIZE, LEAST_BYTES, SECONDS, with_rule
from benchmarks.pool import LINK, local_pool
from nestor.corpus import store
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.policy.names import NamedPolicy
from nestor.problems.inlining_size.summary_rules import OnlyCall
from nestor.rollout.local_pool import PoolSettings

LIMITS: Final[Mapping[str, OnlyCall | None]] = {
    "no rule": None,
    "400, 80": OnlyCall(400, 80),
    "1000, 128": OnlyCall(1000, 128),
    "1000, 200": OnlyCall(1000, 200),
    "4000, 400": OnlyCall(4000, 400),
    "none": ANY_SIZE,
}
"""Bytes in the stock build, and code size where the question is asked, by their names in tables."""


def run_judge(options: argparse.Namespace) -> int:
    """Judge the programs that have no line yet, the smallest first."""
    corpus = store.load(options.corpus)
    policies = {n: NamedPolicy.of(with_rule(options.trees, own)) for n, own in LIMITS.items()}
    done = {line["program"] for line in record.json_lines(options.results, may_lack=True)}
    programs = [p for s in ("train", "validation") for p in corpus.programs_of(s)]
    programs = [p for p in programs if len(p.modules) <= options.modules and p.name not in done]
    settings = EvaluateSettings(("gc",), summary=True, log=False)
    with local_pool(corpus, PoolSettings(timeout=SECONDS)) as pool:
        for program in sorted(programs, key=lambda p: len(p.modules)):
            line: dict[str, Any] = {"program": program.name, "language": program.language}
            found = evaluate(pool, LINK, [program], list(policies.values()), settings)
            rows = [result.programs[0] for result in found]
            line["stock"] = rows[0].stock.columns["linked"] if rows[0].stock else None
            line["change"] = {
                name: [row.column_change_pct(column) for column in ("linked", "text")]
                for name, row in zip(policies, rows, strict=True)
            }
            record.add_lines(options.results, line)
            print(program.name, *line["change"].values(), flush=True)
    return 0


def means(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each limit and language: the mean, and what the rule adds at most."""
    complete = [x for x in lines if all(None not in pair for pair in x["change"].values())]
    large = [x for x in complete if x["stock"] >= LEAST_BYTES]
    rows: list[list[Any]] = []
    for language in sorted({x["language"] for x in large}):
        own = [x["change"] for x in large if x["language"] == language]
        for name in LIMITS:
            added = [[b - a for a, b in zip(x["no rule"], x[name], strict=True)] for x in own]
            changed = sum(any(pair) for pair in added)
            most = [max(pair[i] for pair in added) for i in (0, 1)]
            mean = record.mean_changes([x[name] for x in own])
            rows.append([language, name, len(own), changed, mean, most])
    columns = [("language", "{}"), ("bytes, code size", "{}"), ("programs", "{}")]
    columns += [("changed by the rule", "{}"), ("mean", record.CHANGES)]
    return record.table([*columns, ("most that the rule adds", record.CHANGES)], rows)


def run_table(options: argparse.Namespace) -> int:
    """Print the tables, and write them to a result file if one is named."""
    named = [word.partition("=") for word in options.results]
    tables = {name: means(record.json_lines(Path(path))) for name, _, path in named}
    about = (
        "Training and validation programs with a summary, under trees and under the rule about a"
        " function's only call at several limits: per cent of linked bytes / of code against stock,"
        " link mode gc."
    )
    record.publish(options.json, about, tables)
    return 0


def main() -> int:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    steps = parser.add_subparsers(required=True)
    one = steps.add_parser("judge", help="build programs under each limit")
    one.add_argument("corpus", type=Path)
    one.add_argument("trees", type=Path)
    one.add_argument("results", type=Path)
    one.add_argument("--modules", type=int, default=1 << 30, help="of a program, at most")
    one.set_defaults(run=run_judge)
    two = steps.add_parser("table", help="print what was measured")
    two.add_argument("results", nargs="+", help="NAME=FILE")
    two.add_argument("--json", type=Path)
    two.set_defaults(run=run_table)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
