"""What do trials of the compiler say, and is it true? Packages policies that go by them.

    python -m benchmarks.inlining_trials make POLICY.safetensors --out FILE [--lto] [--in-callers]
        [--leave what-stays inlined-comdats]
        [--bytes N --permille N --calls N --copied N --instructions N]
    python -m benchmarks.inlining_trials callees CORPUS RESULTS.jsonl --project PROJECT…
    python -m benchmarks.inlining_trials judge CORPUS RESULTS.jsonl NAME=POLICY…
    python -m benchmarks.inlining_trials cost CORPUS COSTS.jsonl NAME=POLICY… --program PROGRAM…
    python -m benchmarks.inlining_trials table RESULTS.jsonl CALLEES.jsonl COSTS.jsonl [--json FILE]

``make`` adds the rule of ``nestor.problems.inlining_size.trial_rules`` to a policy, with
``--in-callers`` trials in one caller, and with ``--leave`` rules of those names of
``nestor.problems.inlining_size.summary_rules``. ``callees`` compiles each module of a project under
the trees, and with all calls of one function inlined that the plugin tries, one function after the
other: what the trial says, and what the object comes to. ``judge`` builds training and validation
programs with a summary under policies. ``cost`` compiles the modules of programs from bitcode, in
turn by stock and under policies with a summary: processor seconds, of each module the least of
three. All go on where they were stopped; results are a line a module, or a program and policy.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import only_call, record
from benchmarks.only_call import LEAST_BYTES, SECONDS
from benchmarks.pool import AT_LEVEL, LINK, local_pool
from nestor.cli.setup import program_named
from nestor.compiler.objects import Measure
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.files import write_atomically
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy, named_policy
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.summary_rules import leave_inlined_comdats, leave_what_stays
from nestor.problems.inlining_size.trial_rules import (
    ALL_SAVED,
    SAVED,
    CallerTrials,
    Limits,
    Worth,
    inline_what_saves,
    inline_where_callers_shrink,
    watch_trials,
)
from nestor.rollout.local_pool import PoolSettings
from nestor.tune.session import summary_for_search

_LEAVING: Final = {
    "what-stays": leave_what_stays,
    "inlined-comdats": leave_inlined_comdats,
}
CHOSEN: Final = Worth(bytes=8, permille=10)
_CLASSES: Final = ((-60, -1), (0, 7), (8, 15), (16, 31), (32, 63), (64, 1 << 40))
"""Bytes that trials say are saved, by which functions are grouped in the table."""
_LEAST: Final = -60
"""Functions whose inlining costs more by their trials are not compiled."""
_IDS: Final = (1 << 64) - 1
STOCK: Final = "stock"
_ROUNDS: Final = 3


def run_make(options: argparse.Namespace) -> int:
    """Write the policy with the rule.

    :raises PolicyError: if what was named is something else than trees.
    """
    trees = only_call.with_rule(options.policy, None)
    worth = Worth(options.bytes, options.permille)
    limits = Limits(options.calls, options.copied, options.instructions)
    policy = inline_what_saves(trees, worth, with_summary=not options.lto, limits=limits)
    if options.in_callers:
        policy = inline_where_callers_shrink(policy, CallerTrials())
    for name in options.leave:
        policy = _LEAVING[name](policy)
    write_atomically(options.out, bundle.to_bytes(policy))
    print(f"{options.out}: {bundle.digest(policy)}")
    return 0


def _sizes(of: Measure) -> tuple[int, int]:
    """Return the bytes of an object that a program loads and does not write, and its code."""
    return of.loadable, of.text


def callees_of(pool: Pool, module: Module, trees: TreesPolicy) -> list[dict[str, Any]]:
    """Return what trials say of the functions of ``module``, and what is true of each alone.

    :param trees: all is compiled under them, and tried where they keep a call.
    """
    seen_only = NamedPolicy.of(watch_trials(trees, with_summary=False))
    policy = NamedPolicy.of(trees)
    before, tried = pool.run([Request(module, policy), Request(module, seen_only, log=True)])
    if not before.ok or tried.trajectory is None:
        return []
    rows = tried.trajectory.decisions
    rows = rows[(rows["trial_bytes"] > 0) & (rows[SAVED] >= _LEAST)]
    said = {int(row["callee"]) & _IDS: (int(row["trial_bytes"]), int(row[SAVED])) for row in rows}
    requests = [
        Request(module, policy, overrides=f"nestor-overrides 1\ncallee {callee:016x} inline\n")
        for callee in said
    ]
    found = list[dict[str, Any]]()
    for (own, saved), after in zip(said.values(), pool.run(requests), strict=True):
        if after.ok:
            pairs = zip(_sizes(after.outcome), _sizes(before.outcome), strict=True)
            change = [a - b for a, b in pairs]
            found.append({"bytes": own, "said": saved, "change": change})
    return found


def run_callees(options: argparse.Namespace) -> int:
    """Compile the modules of the named projects that have no line yet."""
    corpus = store.load(options.corpus)
    trees = only_call.with_rule(only_call.TREES, only_call.CHOSEN)
    done = {line["module"] for line in record.json_lines(options.results, may_lack=True)}
    with local_pool(corpus, PoolSettings(timeout=SECONDS)) as pool:
        for module in corpus.modules:
            if module.project not in options.project or module.name in done:
                continue
            callees = callees_of(pool, module, trees)
            record.add_lines(options.results, {"module": module.name, "callees": callees})
            print(f"{module.name}: {len(callees)} functions", flush=True)
    return 0


def _named(words: Sequence[str], corpus: Corpus) -> dict[str, NamedPolicy]:
    """Return the policies of words NAME=POLICY."""
    builtins = AT_LEVEL[corpus.level].builtins
    return {
        name: named_policy(path, builtins) for name, _, path in (w.partition("=") for w in words)
    }


def run_judge(options: argparse.Namespace) -> int:
    """Judge the programs that have no line yet, the smallest first."""
    corpus = store.load(options.corpus)
    policies = _named(options.policies, corpus)
    lines = record.json_lines(options.results, may_lack=True)
    done = {(line["program"], line["policy"]) for line in lines}
    programs = [p for s in ("train", "validation") for p in corpus.programs_of(s)]
    with local_pool(corpus, PoolSettings(timeout=SECONDS)) as pool:
        for program in sorted(programs, key=lambda p: len(p.modules)):
            if len(program.modules) > options.modules:
                break
            for name, policy in policies.items():
                if (program.name, name) in done:
                    continue
                (found,) = only_call.judge(pool, program, {name: policy}, ("gc",))
                line = {"program": program.name, "language": program.language} | found
                record.add_lines(options.results, line)
                print(*line.values(), flush=True)
    return 0


def run_cost(options: argparse.Namespace) -> int:
    """Compile the programs that have no line yet, one module at a time."""
    corpus = store.load(options.corpus)
    policies = _named(options.policies, corpus)
    done = {line["program"] for line in record.json_lines(options.results, may_lack=True)}
    with local_pool(corpus, PoolSettings(jobs=1, timeout=SECONDS)) as pool:
        for name in options.program:
            program = program_named(corpus, name)
            if program.name in done:
                continue
            summary = summary_for_search(pool, LINK, program, "gc")
            seconds = dict.fromkeys((STOCK, *policies), 0.0)
            for module in map(corpus.module, program.modules):
                under = [Request(module, p, summary=summary) for p in policies.values()]
                requests = [Request(module), *under]
                rounds = [[r.cpu_seconds for r in pool.run(requests)] for _ in range(_ROUNDS)]
                for way, least in zip(seconds, np.min(rounds, axis=0), strict=True):
                    seconds[way] += float(least)
            line = {"program": program.name, "language": program.language, "seconds": seconds}
            record.add_lines(options.results, line)
            print(*line.values(), flush=True)
    return 0


def callees_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each class of functions by what their trials said."""
    callees = [one for line in lines for one in line["callees"]]
    rows = list[list[Any]]()
    for least, most in _CLASSES:
        own = [one for one in callees if least <= one["said"] <= most]
        if not own:
            continue
        true = [-one["change"][0] for one in own]
        name = f"{least} to {most}" if most < ALL_SAVED else f"at least {least}"
        smaller = 100 * sum(saved > 0 for saved in true) / len(own)
        said = sum(one["said"] for one in own)
        rows.append([name, len(own), said, sum(true), smaller, min(true)])
    columns = [("the trial says, bytes saved", "{}"), ("functions", "{}")]
    columns += [("it says, in all", "{:+,}"), ("is true, in all", "{:+,.0f}")]
    columns += [("smaller", "{:.0f} %"), ("worst", "{:+,.0f}")]
    return record.table(columns, rows)


def programs_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each language and policy: means, and the program that lost most by it."""
    own: dict[str, dict[str, dict[str, list[float]]]] = {}
    for line in lines:
        if None not in line["change"] and line["stock"] >= LEAST_BYTES:
            programs = own.setdefault(line["language"], {})
            programs.setdefault(line["program"], {})[line["policy"]] = line["change"]
    names = list(dict.fromkeys(line["policy"] for line in lines))
    rows = list[list[Any]]()
    for language, programs in sorted(own.items()):
        complete = [found for found in programs.values() if len(found) == len(names)]
        for name in names:
            added = [[b - a for a, b in zip(p[names[0]], p[name], strict=True)] for p in complete]
            most = [max(pair[i] for pair in added) for i in (0, 1)]
            mean = record.mean_changes([p[name] for p in complete])
            rows.append([language, name, len(complete), mean, most])
    columns = [("language", "{}"), ("policy", "{}"), ("programs", "{}")]
    columns += [("mean", record.CHANGES), ("most that is added to the first", record.CHANGES)]
    return record.table(columns, rows)


def costs_table(lines: Sequence[Mapping[str, Any]]) -> record.Table:
    """Return a row for each program: seconds of stock, and every policy over that."""
    names = [name for name in lines[0]["seconds"] if name != STOCK]
    rows = [
        [
            line["program"],
            line["language"],
            line["seconds"][STOCK],
            *(line["seconds"][name] / line["seconds"][STOCK] for name in names),
        ]
        for line in lines
    ]
    columns = [("program", "{}"), ("language", "{}"), ("stock, CPU s", "{:.1f}")]
    return record.table([*columns, *((f"{name} / stock", "{:.2f}") for name in names)], rows)


def run_table(options: argparse.Namespace) -> int:
    """Print the tables, and write them to a result file if one is named."""
    tables = {
        "programs": programs_table(record.json_lines(options.results)),
        "callees": callees_table(record.json_lines(options.callees)),
        "costs": costs_table(record.json_lines(options.costs)),
    }
    about = (
        "Trials of the compiler: what they say that inlining all calls of a function saves beside"
        " what it saves, and training and validation programs with a summary under policies that"
        " go by them: per cent of linked bytes / of code against stock, link mode gc."
    )
    record.publish(options.json, about, tables)
    return 0


def main() -> int:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    steps = parser.add_subparsers(required=True)
    make = steps.add_parser("make", help="add the rule to a policy")
    make.add_argument("policy", type=Path)
    make.add_argument("--out", type=Path, required=True)
    make.add_argument("--bytes", type=int, default=CHOSEN.bytes)
    make.add_argument("--permille", type=int, default=CHOSEN.permille)
    make.add_argument("--lto", action="store_true", help="try local functions without a summary")
    make.add_argument("--in-callers", action="store_true", help="try calls in one caller too")
    make.add_argument(
        "--leave", nargs="+", choices=_LEAVING, default=[], help="calls that are the default's"
    )
    for name, most in asdict(Limits()).items():
        make.add_argument(f"--{name}", type=int, default=most, help="limit of what is tried")
    make.set_defaults(run=run_make)
    callees = steps.add_parser("callees", help="compare trials with objects")
    callees.add_argument("corpus", type=Path)
    callees.add_argument("results", type=Path)
    callees.add_argument("--project", nargs="+", required=True)
    callees.set_defaults(run=run_callees)
    judge = steps.add_parser("judge", help="build programs under policies")
    judge.add_argument("corpus", type=Path)
    judge.add_argument("results", type=Path)
    judge.add_argument("policies", nargs="+", help="NAME=POLICY")
    judge.add_argument("--modules", type=int, default=1 << 30, help="of a program, at most")
    judge.set_defaults(run=run_judge)
    cost = steps.add_parser("cost", help="what policies add to compiles")
    cost.add_argument("corpus", type=Path)
    cost.add_argument("results", type=Path)
    cost.add_argument("policies", nargs="+", help="NAME=POLICY")
    cost.add_argument("--program", nargs="+", required=True)
    cost.set_defaults(run=run_cost)
    tables = steps.add_parser("table", help="print what was measured")
    tables.add_argument("results", type=Path)
    tables.add_argument("callees", type=Path)
    tables.add_argument("costs", type=Path)
    tables.add_argument("--json", type=Path)
    tables.set_defaults(run=run_table)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
