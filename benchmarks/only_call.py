"""What is the only call of a function worth, and up to what callee? Packages the policy with it.

    python -m benchmarks.only_call make TREES.safetensors --out FILE
    python -m benchmarks.only_call sites CORPUS SITES.jsonl --split train validation
    python -m benchmarks.only_call judge CORPUS RESULTS.jsonl --split train validation --rule FILE
    python -m benchmarks.only_call table RESULTS.jsonl SITES.jsonl [--json FILE]

TREES is ``benchmarks/data/distilled_trees.safetensors``, the policy ``distilled`` as it was
trained. ``make`` adds the rule of ``nestor.problems.inlining_size.summary_rules``. ``sites`` builds
programs under the trees and under the rule for callees of any size, and notes what each call that
only the rule inlines changed in its caller and callee; a call that shares a function with another
one is left out. ``judge`` builds programs with a summary under the trees and under the rule, with
``--rules-only`` under the rule. Both go on where they were stopped; results are a line a build.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import record
from benchmarks.pool import LINK, build_program, local_pool, policy_named
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.files import write_atomically
from nestor.policy import bundle
from nestor.policy.branches import RULED
from nestor.policy.names import NamedPolicy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.summary_rules import OnlyCall, inline_only_calls
from nestor.rollout.local_pool import PoolSettings
from nestor.tune.session import summary_for_search

TREES: Final = Path(__file__).resolve().parent / "data" / "distilled_trees.safetensors"
CHOSEN: Final = OnlyCall(bytes=1000, code_size=200)
"""By ``benchmarks.only_call_limits``; for -Os its code size is 128."""
ANY_SIZE: Final = OnlyCall(bytes=1 << 40, code_size=1 << 40)
_UP_TO: Final = (40, 64, 80, 100, 128, 200)
"""Code sizes of callees by which calls are grouped in the table."""
SECONDS: Final = 600.0
"""A compile that takes longer has failed: long, as the machine may be busy with other things."""
LEAST_BYTES: Final = 10_000
"""Of a stock program that counts in the means, as in the table of the random sample."""
_KEY: Final = ("half", "program", "language", "mode")
_SPLITS: Final = {"train": "chosen on", "validation": "chosen on", "test": "held out"}


def with_rule(path: Path, limit: OnlyCall | None) -> TreesPolicy:
    """Return the trees in ``path`` with the rule; with a limit of None, as they are.

    :raises PolicyError: if they are something else.
    """
    policy = bundle.load(path)
    if not isinstance(policy, TreesPolicy):
        raise PolicyError(f"{path} holds no trees")
    return policy if limit is None else inline_only_calls(policy, limit)


def _programs(corpus: Corpus, options: argparse.Namespace) -> list[Program]:
    """Return the programs of the splits, the smallest first; all where there are no splits."""
    found = [p for s in options.split for p in corpus.programs_of(s)] or list(corpus.programs)
    found = [p for p in found if options.language in (None, p.language)]
    return sorted((p for p in found if len(p.modules) <= options.modules), key=_modules)


def _modules(program: Program) -> int:
    return len(program.modules)


def sites(pool: Pool, program: Program) -> list[dict[str, Any]]:
    """Return the calls of ``program`` that only the rule inlines, each with what it changed."""
    summary = summary_for_search(pool, LINK, program, "gc")
    rule = NamedPolicy.of(with_rule(TREES, ANY_SIZE))
    before, after = (
        build_program(pool, program, policy, ("gc",), summary, {})
        for policy in (policy_named(str(TREES)), rule)
    )
    own, new = before.functions["gc"], after.functions["gc"]
    found = list[dict[str, Any]]()
    for module, trajectory in after.trajectories.items():
        decisions = trajectory.decisions
        earlier = before.trajectories[module].decisions
        inlined = earlier["site"][earlier["answer"] > 0]
        ruled = decisions[decisions["logit"] > RULED]
        for row in ruled[~np.isin(ruled["site"], inlined)]:
            both = [int(row[name].view("<u8")) for name in ("caller", "callee")]
            change = sum(new.get(one, 0.0) - own.get(one, 0.0) for one in both)
            sizes = [int(row[name]) for name in ("callee_code_size", "program_callee_bytes")]
            kept = any(one in own for one in both)
            found.append({"functions": both, "change": change, "sizes": sizes, "linked": kept})
    shared = Counter(one for site in found for one in site["functions"])
    alone = [site for site in found if all(shared[one] == 1 for one in site["functions"])]
    return [site for site in alone if site["linked"]]


def judge(
    pool: Pool, program: Program, policies: Mapping[str, NamedPolicy], modes: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the line of ``program`` for each policy and mode, with a summary."""
    settings = EvaluateSettings(tuple(modes), summary=True, log=False)
    for name, policy in policies.items():
        for result in evaluate(pool, LINK, [program], [policy], settings):
            (row,) = result.programs
            changes = [row.column_change_pct(column) for column in ("linked", "text")]
            stock = row.stock.columns["linked"] if row.stock else None
            yield {"policy": name, "mode": result.mode, "stock": stock, "change": changes}


def run_make(options: argparse.Namespace) -> int:
    """Write the policy with the rule."""
    policy = with_rule(options.trees, OnlyCall(options.bytes, options.code_size))
    write_atomically(options.out, bundle.to_bytes(policy))
    print(f"{options.out}: {bundle.digest(policy)}")
    return 0


def run_sites(options: argparse.Namespace) -> int:
    """Measure single calls of the programs that have no line yet."""
    corpus = store.load(options.corpus)
    done = {line["program"] for line in record.json_lines(options.results, may_lack=True)}
    with local_pool(corpus, PoolSettings(jobs=options.jobs, timeout=SECONDS)) as pool:
        for program in _programs(corpus, options):
            if program.name not in done:
                line = {"program": program.name, "sites": sites(pool, program)}
                record.add_lines(options.results, line)
                print(f"{program.name}: {len(line['sites'])} calls", flush=True)
    return 0


def run_judge(options: argparse.Namespace) -> int:
    """Judge the programs that have no line yet."""
    corpus = store.load(options.corpus)
    policies = {"trees": policy_named(str(TREES)), "rule": policy_named(options.rule)}
    if options.rules_only:
        del policies["trees"]
    splits = {project.name: project.split for project in corpus.projects}
    earlier = record.json_lines(options.results, may_lack=True)
    done = {(line["program"], line["policy"], line["mode"]) for line in earlier}
    with local_pool(corpus, PoolSettings(jobs=options.jobs, timeout=SECONDS)) as pool:
        for program in _programs(corpus, options):
            half = options.half or _SPLITS[splits[program.project] or "test"]
            for name, policy in policies.items():
                modes = [m for m in options.mode if (program.name, name, m) not in done]
                if not modes:
                    continue
                about = {"program": program.name, "half": half, "language": program.language}
                lines = [about | line for line in judge(pool, program, {name: policy}, modes)]
                record.add_lines(options.results, *lines)
                for line in lines:
                    print(*line.values(), flush=True)
    return 0


def programs_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row a program and mode of which both policies are known and differ."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    stock: dict[tuple[str, ...], float] = {}
    for line in lines:
        if None in line["change"]:
            continue
        key = tuple(line[name] for name in _KEY)
        found.setdefault(key, {})[line["policy"]] = line["change"]
        stock[key] = line["stock"]
    rows = [
        [*key, stock[key], own["trees"], own["rule"]]
        for key, own in sorted(found.items())
        if len(own) == 2 and own["trees"] != own["rule"]
    ]
    columns = [(name, "{}") for name in _KEY]
    changes = [("trees", record.CHANGES), ("with the rule", record.CHANGES)]
    return record.table([*columns, ("stock bytes", "{:,}"), *changes], rows)


def means_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each half, language and mode: means over programs that are not tiny."""
    groups: dict[tuple[str, ...], dict[str, dict[str, list[float]]]] = {}
    for line in lines:
        if None not in line["change"] and line["stock"] >= LEAST_BYTES:
            key = (line["half"], line["language"], line["mode"])
            own = groups.setdefault(key, {}).setdefault(line["program"], {})
            own[line["policy"]] = line["change"]
    rows = []
    for group, programs in sorted(groups.items()):
        pairs = [own for own in programs.values() if len(own) == 2]
        if not pairs:
            continue
        before, after = ([own[name] for own in pairs] for name in ("trees", "rule"))
        grown = [max(b[i] - a[i] for a, b in zip(before, after, strict=True)) for i in (0, 1)]
        changed = sum(own["trees"] != own["rule"] for own in pairs)
        rows.append(
            [
                *group,
                len(pairs),
                changed,
                record.mean_changes(before),
                record.mean_changes(after),
                grown,
            ]
        )
    columns = [(name, "{}") for name in ("half", "language", "mode")]
    columns += [("programs", "{}"), ("changed by the rule", "{}")]
    names = "trees, mean", "with the rule, mean", "largest change by the rule"
    return record.table([*columns, *((name, record.CHANGES) for name in names)], rows)


def sites_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each class of callees by code size."""
    own = [site for line in lines for site in line["sites"]]
    rows = []
    for least, most in zip((0, *_UP_TO), (*_UP_TO, None), strict=True):
        name = f"{least + 1} to {most}" if most else f"above {least}"
        part = [s["change"] for s in own if least < s["sizes"][0] <= (most or 1 << 60)]
        worse = [change for change in part if change > 0]
        if part:
            rows.append([name, len(part), sum(part), len(worse), max(worse, default=0.0)])
    columns = [("callee's code size", "{}"), ("calls", "{}"), ("bytes", "{:+,.0f}")]
    return record.table([*columns, ("larger", "{}"), ("most", "{:+,.0f}")], rows)


def run_table(options: argparse.Namespace) -> int:
    """Print the tables, and write them to a result file if one is named."""
    lines = record.json_lines(options.results)
    tables = {
        "means": means_table(lines),
        "programs": programs_table(lines),
        "sites": sites_table(record.json_lines(options.sites)),
    }
    about = (
        "The only call of a function in the program, inlined on top of the policy `distilled`: per"
        " cent of linked bytes / of code against stock -Oz, with a summary; and what single such"
        " calls change, in linked bytes."
    )
    record.publish(options.json, about, tables)
    return 0


def main() -> int:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    steps = parser.add_subparsers(required=True)
    one = steps.add_parser("make", help="write the policy with the rule")
    one.add_argument("trees", type=Path)
    one.add_argument("--bytes", type=int, default=CHOSEN.bytes, help="of the callee, at most")
    one.add_argument("--code-size", type=int, default=CHOSEN.code_size, help="the same")
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=run_make)
    two = steps.add_parser("sites", help="measure single calls")
    three = steps.add_parser("judge", help="measure programs")
    for step, run in ((two, run_sites), (three, run_judge)):
        step.add_argument("corpus", type=Path)
        step.add_argument("results", type=Path)
        step.add_argument("--split", nargs="+", default=["train", "validation"])
        step.add_argument("--language", choices=("c", "c++"))
        step.add_argument("--modules", type=int, default=1 << 30, help="of a program, at most")
        step.add_argument("--jobs", type=int, default=1, help="compilers at once")
        step.set_defaults(run=run)
    three.add_argument("--rule", default="distilled", help="the policy with the rule")
    three.add_argument("--rules-only", action="store_true", help="do not build under the trees")
    three.add_argument("--mode", nargs="+", default=["gc"])
    three.add_argument("--half", help="of a corpus without splits: 'chosen on' or 'held out'")
    four = steps.add_parser("table", help="print what was measured")
    four.add_argument("results", type=Path)
    four.add_argument("sites", type=Path)
    four.add_argument("--json", type=Path)
    four.set_defaults(run=run_table)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
