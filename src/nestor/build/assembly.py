"""From compiled units to a program: what ``objects`` and ``link`` do differently."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nestor.build.build import BuildError
from nestor.build.calls import Calls
from nestor.build.function_ids import local_id, name_id
from nestor.build.incremental import Priced, ProgramBuild
from nestor.compiler.objects import Function, Measure
from nestor.corpus.model import Program
from nestor.problem.overrides import Overrides
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.trajectory import Trajectory


@dataclass(frozen=True)
class Assembly:
    """A program made of compiled units."""

    columns: Mapping[str, float] | None
    """Those columns of the problem's report that the program as a whole has; None if it could not
    be put together."""
    failure: str | None
    scores: Callable[[], Mapping[str, float]]
    """What of the score is each unit's."""
    functions: Callable[[Mapping[str, Trajectory]], Mapping[int, float]]
    """What of the score each function takes, by id; from the units' logs, which name functions."""
    binary: str | None = None
    """SHA-256 of the binary, if it was to be kept."""
    calls: Callable[[Mapping[str, Trajectory]], Calls] = lambda logs: Calls()
    """What its run called, likewise; nothing where programs are not run."""
    priced: Callable[[Mapping[str, Trajectory]], Priced | None] = lambda logs: None
    """What of a column with a limit each function takes, likewise; None where there is none."""
    output: str | None = None
    """SHA-256 of what its run printed and left; None where programs are not run."""


def program_build(
    program: Program,
    overrides: Overrides,
    score: str,
    assemblies: Mapping[str, Assembly],
    logs: Mapping[str, Trajectory],
    modules: Mapping[str, tuple[str, ...]],
    objects: Mapping[str, str] | None = None,
) -> ProgramBuild:
    """Return a build of ``program``, which was put together in each mode of ``assemblies``.

    :param score: the column that is made small.
    :param logs: by back end, which optimises those of the program's modules that ``modules`` names.
    :param objects: SHA-256 of each module's object, where it has one.
    :raises BuildError: if it could not be put together in one of them.
    """
    columns = {}
    for mode, assembly in assemblies.items():
        if assembly.columns is None:
            raise BuildError(f"{program.name}: {assembly.failure}.")
        columns[mode] = assembly.columns
    priced = {mode: assembly.priced(logs) for mode, assembly in assemblies.items()}
    return ProgramBuild(
        overrides=dict(overrides),
        score=score,
        columns=columns,
        functions={mode: assembly.functions(logs) for mode, assembly in assemblies.items()},
        trajectories=logs,
        modules=modules,
        calls={mode: assembly.calls(logs) for mode, assembly in assemblies.items()},
        priced={mode: own for mode, own in priced.items() if own is not None},
        outputs={mode: one.output for mode, one in assemblies.items() if one.output},
        objects=objects or {},
        scored=lambda mode: assemblies[mode].scores(),
    )


def failed_assembly(reason: str) -> Assembly:
    """Return a program that could not be put together."""
    return Assembly(None, reason, dict, lambda logs: {})


class Assembler(Protocol):
    """Makes programs of compiled units."""

    def __call__(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Put ``program`` together from its units' rollouts, which kept their objects.

        :param keep: keep the binary in the pool's store.
        """


def logged_id(name: str, ids: Mapping[str, int]) -> int:
    """Return the id of a function: that of ``ids``, which a log told, or the hash of its name."""
    return ids.get(name) or name_id(name)


def id_in_unit(function: Function, ids: Mapping[str, int], trajectory: Trajectory | None) -> int:
    """Return the id of a function of one unit's object, whether a question was about it or not.

    :param ids: those of the unit's log by name.
    :param trajectory: the log.
    """
    number = ids.get(function.name)
    if number is not None:
        return number
    module = None if trajectory is None else trajectory.facts.get("module")
    if function.local and module is not None:
        return local_id(function.name, module)
    return name_id(function.name)


def ids_by_name(trajectory: Trajectory | None) -> dict[str, int]:
    """Return the ids of a log's functions by their names."""
    return {} if trajectory is None else {name: key for key, name in trajectory.names.items()}


def measured_functions(
    sizes: Mapping[str, Measure], logs: Mapping[str, Trajectory]
) -> Iterator[tuple[str, Function, int]]:
    """Yield each function of the units' objects: the unit, the function and its id.

    :param sizes: of each unit's object; ``logs``, those of the units that asked something.
    """
    for name, own in sizes.items():
        log = logs.get(name)
        ids = ids_by_name(log)
        for function in own.functions:
            yield name, function, id_in_unit(function, ids, log)


def sum_columns(parts: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Add up columns; whole numbers stay whole."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total
