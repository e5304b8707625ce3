"""The functions of held-out programs that cost most, and compiles that touch no others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.setup import ready_plugin
from nestor.corpus.model import Corpus, Module, Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Workplace
from nestor.progress import silent
from nestor.regalloc import allocation_log
from nestor.regalloc.allocation_log import FunctionAllocation
from nestor.regalloc.compile import run_plugin
from nestor.regalloc.outcome import ModuleCost
from nestor.regalloc.overrides import STOCK, Key, to_text
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.temporary import temporary_folder

COVER: Final = 0.97
"""Part of a program's cost that its hot functions have."""


@dataclass(frozen=True)
class Hot:
    """A function of a program."""

    unit: str
    function: FunctionAllocation
    """As stock allocates it."""
    share: float
    """Of the program's cost under stock."""


def open_pool(corpus: Corpus, problem: str, jobs: int) -> LocalPool:
    """Return a pool for one of the problems about register allocation."""
    found = find_problem(problem)
    return LocalPool(found, corpus, ready_plugin(found, None, silent), PoolSettings(jobs=jobs))


def stock_costs(pool: LocalPool, programs: Sequence[Program]) -> dict[str, ModuleCost]:
    """Compile the modules of ``programs`` under the default policies; by module.

    :raises NestorError: if a module cannot be compiled.
    """
    names = dict.fromkeys(name for program in programs for name in program.modules)
    done = pool.run([Request(pool.corpus.module(name), DEFAULT) for name in names])
    failed = [f"{r.request.unit.name}: {r.failure}" for r in done if not r.ok]
    if failed:
        raise NestorError(f"{len(failed)} modules cannot be compiled, first {failed[0]}")
    return {rollout.request.unit.name: rollout.outcome for rollout in done}


def hot_functions(
    program: Program, costs: Mapping[str, ModuleCost], cover: float = COVER
) -> list[Hot]:
    """Return the functions that make up ``cover`` of a program's cost, the hottest first."""
    every = [
        (weight * function.cost.cost, unit, function)
        for unit in program.modules
        for weight, function in zip(costs[unit].weights, costs[unit].functions, strict=True)
    ]
    total = sum(cost for cost, _, _ in every)
    found, covered = list[Hot](), 0.0
    for cost, unit, function in sorted(every, key=lambda each: (-each[0], each[2].id)):
        if cost <= 0 or covered >= cover * total:
            break
        covered += cost
        found.append(Hot(unit, function, cost / total))
    return found


@dataclass(frozen=True)
class Tried:
    """What one compile on trial came to."""

    functions: Mapping[int, FunctionAllocation]
    """By id, of those that were not left to stock."""
    cpu_seconds: float


def compile_only(
    place: Workplace, unit: Module, cost: ModuleCost, only: Collection[int], words: Sequence[str]
) -> Tried:
    """Compile ``unit`` with options of the plugin; all functions but ``only`` are stock's.

    :raises NestorError: if the compiler fails.
    """
    fixed = to_text({Key("function", f.id): STOCK for f in cost.functions if f.id not in only})
    with temporary_folder("hot") as text:
        log = Path(text) / "log"
        options = [
            f"-nestor-allocation-overrides={place.files.write(fixed.encode())}",
            f"-nestor-allocation-log={log}",
            *words,
        ]
        done = run_plugin(unit, place, Path(text) / "module.o", options)
        if not done.ok:
            raise NestorError(f"{unit.name}: {done.reason}")
        functions = allocation_log.read(log)
    return Tried({f.id: f for f in functions if f.id in only}, done.cpu_seconds)
