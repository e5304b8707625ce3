"""Build programs under policies about evictions, run them, and write rows of rewards beside J.

    python -m benchmarks.reward_rows CORPUS ROWS.jsonl --work FOLDER [--programs N] [--policy …]

CORPUS is a codegen corpus of the tier speed; one without profiles needs the calls of functions
('nestor workload calls'). The programs with the least bitcode come first. For each and each policy
a row for ``benchmarks.reward_correlation``: the measured J, and of the same build the rewards
``static``, ``flattened`` (the same under the square roots of the frequencies), ``cycles`` and
``repeated`` (by the shipped cost model), each function weighted by its calls; and ``shares``, the
changes of the functions' static costs, each weighted by its share of J as stock runs. Only modules
that hold hot functions are compiled under the policies. The built-in policies that nobody would
ship are among them, so that rewards are judged on losses too. Programs whose rows are there already
are passed over.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.regalloc_hot import hot_functions, open_pool
from benchmarks.regalloc_sweep import say
from nestor.build.linking import link
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.cost.contract import CostModel
from nestor.cost.elf import mapped
from nestor.cost.predict.expected import expected_cycles
from nestor.cost.registry import open_model
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.policy.portfolio import PortfolioPolicy
from nestor.problem.problem import Problem
from nestor.problem.rollout import Request, Rollout
from nestor.regalloc.outcome import ModuleCost
from nestor.rollout.local_pool import LocalPool
from nestor.temporary import temporary_folder
from nestor.workload.counts import Measurement
from nestor.workload.kept import measure_kept

PROBLEM: Final = "regalloc-eviction"
POLICIES: Final = ("shipped-eviction", "first", "keep", "lowest-density")


def policies(problem: Problem, names: Sequence[str]) -> dict[str, NamedPolicy]:
    """Return the policies by the names of variants; the members of a portfolio count too."""
    found: dict[str, NamedPolicy] = {}
    for name in names:
        found[name] = problem.policy(name)
        policy = found[name].policy
        if isinstance(policy, PortfolioPolicy):
            members = enumerate(policy.members())
            found |= {f"{name} {number}": NamedPolicy.of(member) for number, member in members}
    return found


def rows(
    pool: LocalPool, program: Program, used: Mapping[str, NamedPolicy], model: CostModel, work: Path
) -> list[dict[str, Any]]:
    """Return the rows of one program, that of stock first.

    :raises NestorError: if the stock program cannot be built or run.
    """
    units = [pool.corpus.module(name) for name in program.modules]
    stock = _done(pool.run([Request(unit, keep=True) for unit in units]))
    costs: dict[str, ModuleCost] = {name: rollout.outcome for name, rollout in stock.items()}
    hot = {each.unit for each in hot_functions(program, costs)}
    own = {name: stock[name].outcome for name in sorted(hot)}
    run = _run(pool, program, stock, work)
    found = [_row(pool, program, "stock", stock, own, run, model, run.counts.total)]
    for name, policy in used.items():
        try:
            requests = [Request(unit, policy, keep=True) for unit in units if unit.name in hot]
            done = stock | _done(pool.run(requests))
            j = _run(pool, program, done, work).counts.total
            found.append(_row(pool, program, name, done, own, run, model, j))
        except NestorError as error:
            say(f"{program.name}, {name}: {error}")
    return found


def _done(rollouts: Sequence[Rollout]) -> dict[str, Rollout]:
    failed = [f"{r.request.unit.name}: {r.failure}" for r in rollouts if not r.ok]
    if failed:
        raise NestorError(failed[0])
    return {rollout.request.unit.name: rollout for rollout in rollouts}


def _run(pool: LocalPool, program: Program, done: Mapping[str, Rollout], work: Path) -> Measurement:
    """Link a build and run it."""
    objects = {n: pool.objects.path(r.object) for n, r in done.items() if r.object is not None}
    toolchain = pool.plugin.toolchain
    with temporary_folder("rows") as text:
        binary = Path(text) / "program"
        linked = link(toolchain, pool.corpus, program, objects, out=binary, limits=pool.limits)
        if linked.failure is not None:
            raise NestorError(linked.failure)
        words = program.workload.measure if program.workload is not None else ()
        return measure_kept(pool.corpus, program, binary, words, toolchain, work).first


def _row(
    pool: LocalPool,
    program: Program,
    variant: str,
    done: Mapping[str, Rollout],
    stock: Mapping[str, ModuleCost],
    run: Measurement,
    model: CostModel,
    j: int,
) -> dict[str, Any]:
    """Add the rewards of a build up over the functions of its hot modules.

    :param stock: the costs of these modules under stock.
    :param run: of the stock build.
    """
    sums = dict.fromkeys(("static", "flattened", "cycles", "repeated"), 0.0)
    left = {name: own.counts.total / run.counts.total for name, own in run.functions.items()}
    shares, profile = 1.0, False
    for name, before in stock.items():
        outcome: ModuleCost = done[name].outcome
        code = pool.objects.path(str(done[name].object)).read_bytes()
        functions = mapped.functions(code, frequencies=True)
        expected = expected_cycles(functions, model)
        cycles = dict(zip((f.name for f in functions), expected, strict=True))
        costs = {function.id: function.cost.cost for function in before.functions}
        for weight, function in zip(outcome.weights, outcome.functions, strict=True):
            profile |= function.entries is not None
            sums["static"] += weight * function.cost.cost
            sums["flattened"] += weight * function.cost.flattened
            if weight and function.name in cycles:
                sums["cycles"] += weight * cycles[function.name].cycles
                sums["repeated"] += weight * cycles[function.name].repeated
            # Of several functions of one name the first has the share.
            share = left.pop(function.name, 0.0)
            shares += share * (function.cost.cost / costs[function.id] - 1)
    row = {"program": program.name, "variant": variant, "profile": profile, "j": j}
    return {**row, **sums, "shares": shares}


def mapped_corpus(corpus: Corpus) -> Corpus:
    """Return ``corpus`` with modules whose objects carry the frequencies of blocks."""
    modules = (
        replace(module, options=(*module.options, *mapped.FLAGS)) for module in corpus.modules
    )
    return replace(corpus, modules=tuple(modules))


def main() -> None:
    """Build, run and write."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder of the measurements")
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--policy", nargs="+", default=list(POLICIES))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    corpus = mapped_corpus(store.load(options.corpus))
    sizes = {m.name: corpus.bitcode(m).stat().st_size for m in corpus.modules}
    having = [program for program in corpus.programs if program.workload]
    having.sort(key=lambda p: (sum(sizes[name] for name in p.modules), p.name))
    kept = options.rows.read_text().splitlines() if options.rows.exists() else []
    present = {json.loads(line)["program"] for line in kept}
    model = open_model("shipped", None)
    with open_pool(corpus, PROBLEM, options.jobs) as pool:
        used = policies(pool.problem, options.policy)
        for program in having[: options.programs]:
            if program.name in present:
                continue
            say(program.name)
            try:
                found = rows(pool, program, used, model, options.work)
            except NestorError as error:
                say(f"{program.name}: {error}")
                continue
            with options.rows.open("a") as file:
                file.write("".join(f"{json.dumps(row)}\n" for row in found))


if __name__ == "__main__":
    main()
