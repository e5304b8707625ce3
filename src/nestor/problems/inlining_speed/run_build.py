"""Programs linked and run: what a run executes is the score, and bytes of code have a price.

The modes are the two inputs of a workload: a search takes one, and the other, which it has not
seen, says what is left of the saving elsewhere.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, Final

from nestor.build.assembly import Assembly, failed_assembly, ids_by_name
from nestor.build.calls import Calls
from nestor.build.incremental import Priced
from nestor.build.link import kept_functions, link_rollouts
from nestor.build.linking import Link
from nestor.build.unit_build import UnitBuild
from nestor.compiler.cache import cache_place
from nestor.compiler.objects import Measure, ObjectError, aliases
from nestor.corpus.model import Program
from nestor.events.errors import EventsError
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_speed.spent import Spend, Spent, executed
from nestor.workload.callgrind import MeasureError
from nestor.workload.counts import Measurement, sum_of
from nestor.workload.kept import measure_kept

Aliases = Mapping[str, frozenset[str]]
"""What :func:`nestor.compiler.objects.aliases` returns."""

_STRUCTOR: Final = re.compile(r"(_Z.*[CD])([12])(E.*)")
"""A constructor or destructor, mangled (Itanium C++ ABI, 5.1.4.3)."""

MODES: Final = ("profile", "measure")
"""The inputs of a workload; a search takes the first."""
PRICE: Final = 0.25
"""What 1 % more code must save of the score, in per cent, for a search to take a move."""


@dataclass(frozen=True)
class RunBuild(UnitBuild):
    """Links a program's modules, without sections that nothing uses, and counts its run."""

    name: ClassVar[str] = "run"
    modes: ClassVar[tuple[str, ...]] = MODES
    options: ClassVar[str] = "-ffunction-sections -fdata-sections"
    least: ClassVar[float] = 0.25  # a counted run takes as long, and most steps touch few modules
    spend: Spend = executed
    """What a run costs."""

    def assemble(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Link ``program`` and count its runs of the kind ``mode``."""
        linked, binary = link_rollouts(pool, program, rollouts, "gc", keep=True)
        if linked.measure is None or binary is None:
            return failed_assembly(linked.failure or "not linked")
        sizes: dict[str, Measure] = {name: done.outcome for name, done in rollouts.items()}
        found = counted(pool, program, mode, pool.objects.path(binary), linked, sizes, self.spend)
        if keep and found.columns is not None:
            return replace(found, binary=binary)
        pool.objects.release(binary)
        return found


def counted(
    pool: Pool,
    program: Program,
    mode: str,
    binary: Path,
    linked: Link,
    sizes: Mapping[str, Measure],
    spend: Spend,
) -> Assembly:
    """Return what the runs of the kind ``mode`` cost, added up, and what of it is whose.

    :param linked: the sizes of ``binary``, and which functions of which unit are in it.
    :param sizes: of the units.
    """
    runs = () if program.workload is None else program.workload.runs(mode)
    if not runs:
        return failed_assembly(
            f"it has no {mode} run; 'nestor corpus capture --out CORPUS --runs FILE' gives it"
            " one (docs/guide/workloads.md)"
        )
    assert linked.measure is not None
    folder = Path(cache_place()) / "measurements"
    try:
        run = sum_of(
            measure_kept(pool.corpus, program, binary, r, pool.plugin.toolchain, folder).first
            for r in runs
        )
        names = aliases(binary)
        spent = spend(pool, program, binary, runs, run)
    except (MeasureError, ObjectError, EventsError) as error:
        return failed_assembly(str(error))
    counts, text = run.counts, linked.measure.text
    columns = {
        spent.column: spent.total,
        "J": counts.total,
        "instructions": counts.instructions,
        "reads": counts.reads,
        "writes": counts.writes,
        "text": text,
    }
    price = price_of_a_byte(spent.total, text)
    return Assembly(
        columns,
        None,
        dict,
        lambda logs: functions_of(run, spent, names, linked, sizes, logs, price),
        None,
        lambda logs: calls_of(run, names, linked, logs),
        lambda logs: Priced("text", price, bytes_of(linked, sizes, logs)),
        run.left,
    )


def price_of_a_byte(total: float, text: int) -> float:
    """Return what a byte of code costs, in the unit of the score.

    It is rounded to a power of two, so that two builds of a program have the same.
    """
    return float(2.0 ** round(math.log2(PRICE * total / text)))


def calls_of(
    run: Measurement, names: Aliases, linked: Link, logs: Mapping[str, Trajectory]
) -> Calls:
    """Return what ``run`` called, by the ids of the functions.

    Static functions of one name are one to callgrind: each has the calls of all.

    :param names: all names of each function's code, of which callgrind reports one.
    """
    reported = _reported(run, names)
    edges: dict[tuple[int, int], int] = {}
    entries: dict[int, int] = {}
    for module, log in logs.items():
        ids = ids_by_name(log)
        for name, number in ids.items():
            if (module, name) not in linked.kept:
                continue
            symbol = reported.get(name, name)
            entries[number] = run.functions[symbol].calls if symbol in run.functions else 0
            for called, calls in run.edges.get(symbol, {}).items():
                for callee in names.get(called, structor_names(called)):
                    if callee in ids:
                        edges[number, ids[callee]] = calls
    for number, symbol in _of_libraries(run, logs).items():
        entries.setdefault(number, run.entered[symbol].calls)
    return Calls(edges, entries)


def functions_of(
    run: Measurement,
    spent: Spent,
    names: Aliases,
    linked: Link,
    sizes: Mapping[str, Measure],
    logs: Mapping[str, Trajectory],
    price: float,
) -> dict[int, float]:
    """Return what each function costs itself and the price of its code, by function id.

    A function that was asked about may be in a library: a call that is not inlined goes there.

    :param names: all names of each function's code, of which callgrind reports one.
    """
    reported = _reported(run, names)
    bytes_ = bytes_of(linked, sizes, logs)
    found = defaultdict(float, {number: price * size for number, size in bytes_.items()})
    left: defaultdict[str, float] = defaultdict(float)
    for name, cost in spent.functions.items():
        left[reported.get(name, name)] += cost
    for function, number in kept_functions(linked, sizes, logs):
        # Static functions of one name are one to callgrind: the first takes all.
        found[number] += left.pop(reported.get(function.name, function.name), 0)
    outside = {name: spent.entered.get(name, 0) for name in run.entered}
    for number, symbol in _of_libraries(run, logs).items():
        found[number] += outside.pop(symbol, 0)
    return dict(found)


def bytes_of(
    linked: Link, sizes: Mapping[str, Measure], logs: Mapping[str, Trajectory]
) -> dict[int, float]:
    """Return the bytes of each function's code that the linker kept, by function id."""
    found: defaultdict[int, float] = defaultdict(float)
    for function, number in kept_functions(linked, sizes, logs):
        found[number] += function.code
    return dict(found)


def _reported(run: Measurement, names: Aliases) -> dict[str, str]:
    """Return the name under which callgrind reports each function, by each of its names.

    A complete constructor is often another name of the base constructor, which LLVM asks about.
    """
    return {name: symbol for symbol in run.functions for name in names.get(symbol, (symbol,))}


def _of_libraries(run: Measurement, logs: Mapping[str, Trajectory]) -> dict[int, str]:
    """Return the functions of libraries that were asked about, by id, as callgrind reports them."""
    reported = {name: symbol for symbol in run.entered for name in structor_names(symbol)}
    ids = chain.from_iterable(ids_by_name(log).items() for log in logs.values())
    return {number: reported[name] for name, number in ids if name in reported}


def structor_names(symbol: str) -> tuple[str, ...]:
    """Return the names of complete and base constructor or destructor, which are often one code.

    :param symbol: one of them, or any other name, which has no second one.
    """
    found = _STRUCTOR.fullmatch(symbol)
    if found:
        before, kind, after = found.groups()
        return (symbol, f"{before}{'2' if kind == '1' else '1'}{after}")
    return (symbol,)
