"""Which modules a first build compiles again: those that save most for their cost, up to a bound.

To compile again all modules of which a decision changes would be nearly a second build. A few
modules bring most of the saving. The others are left as the first build made them by a file of
overrides, which later builds read too, so that a clean build gives the same objects.

Costs are sizes, not seconds: the same sources give the same choice on every machine.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nestor.cli.make.embedded_names import BITCODE
from nestor.cli.make.recompile import Recompiler
from nestor.cli.make.records import Record
from nestor.errors import NestorError
from nestor.problems.inlining_size.features.site import TRIALS
from nestor.problems.inlining_size.log import read as read_log
from nestor.problems.inlining_size.search import overrides
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.summary.decisions import expected_savings
from nestor.problems.inlining_size.summary.program_summary import ProgramSummary, module_id

if TYPE_CHECKING:
    from nestor.policy.spec import Policy
    from nestor.problem.trajectory import Trajectory

ALL_PERCENT: Final = 100
"""Leaves no module out."""
USUAL_PERCENT: Final = 30
"""Of the cost of the first build, less what Nestor itself takes, so that with logs, summary and
links a first build costs at most half as much again."""
_OWN: Final = 256 << 10
"""Bytes of bitcode that compile in the time that Nestor itself takes: about half a second."""
_FREE: Final = 256 << 10
"""Bytes of bitcode that the smallest builds may compile again."""
_HEADERS: Final = 128 << 10
"""Bytes of bitcode that compile in the time that the headers of a C++ source take."""
_FROM_SOURCE: Final = 1.5
"""Time for a byte of bitcode in a C++ compile from source over that in one from bitcode: as
``_HEADERS``, measured on 43 modules of four projects, of which the whole ratio is 1.2 to 5.8."""
_TRIES: Final = 2.5
"""Time of a compile from bitcode under a policy that reads inlining trials over that of stock, in
the modules that are worth compiling again, which have most to try; over whole programs it is 1.3 to
2.4 (docs/studies/inlining-trials.md)."""
_EMPTY: Final = 8 << 10
"""Bytes of an object that a C compile makes in the time that it takes to start."""
_BITCODE_OF_OBJECT: Final = 2.25
"""Bytes of bitcode that compile in the time that a C compile takes for a byte of its object: as
``_EMPTY``, measured on the 34 modules of lua."""


@dataclass(frozen=True)
class Candidate:
    """An object of the first build, and what it would be to compile it again."""

    record: Record
    saving: float
    """Bytes that the policy expects to save: 0 if no decision changes, infinite if unknown."""
    cost: float
    """In bytes of bitcode."""
    cost_from_source: float
    from_bitcode: bool
    module: Key | None
    """The override's key of all modules with this name of a source file; None without a log."""


def candidates_of(
    records: Sequence[Record], policy: "Policy", summary: ProgramSummary, recompiler: Recompiler
) -> list[Candidate]:
    """Return what it would be to compile the object of each of ``records`` under the policy."""
    logs = [_log(record) for record in records]
    sound = [log for log in logs if log is not None]
    savings = iter(expected_savings(policy, sound, summary))
    slower = 1.0 if set(TRIALS).isdisjoint(policy.features) else _TRIES
    return [
        _candidate(record, recompiler, log, math.inf if log is None else next(savings), slower)
        for record, log in zip(records, logs, strict=True)
    ]


def _candidate(
    record: Record,
    recompiler: Recompiler,
    log: "Trajectory | None",
    saving: float,
    slower: float,
) -> Candidate:
    replayable = recompiler.can_use_bitcode(record)
    bitcode = None if record.logs is None else record.logs / BITCODE
    if bitcode is not None and bitcode.is_file():
        size = float(bitcode.stat().st_size)
        from_source = _HEADERS + _FROM_SOURCE * size
    else:
        size = _BITCODE_OF_OBJECT * sum(_EMPTY + path.stat().st_size for path in record.outputs)
        from_source = size
    module = None if log is None else Key("module", log.facts["module"])
    # Trials take as long whatever the module is compiled from.
    cost = (size if replayable else from_source) + (slower - 1) * size
    return Candidate(record, saving, cost, from_source, replayable, module)


def left_as_they_are(candidates: Sequence[Candidate], percent: int | None) -> Mapping[Key, float]:
    """Return the modules that are not to be compiled again, with what they would save.

    :param percent: of the cost of building ``candidates``; None for the usual bound, below which
        the smallest builds do not fall.
    """
    if percent is not None and percent >= ALL_PERCENT:
        return {}
    of_module: defaultdict[Key, list[Candidate]] = defaultdict(list)
    spent = 0.0
    for each in candidates:
        if each.module is not None and each.saving < float("inf"):
            of_module[each.module].append(each)
        else:
            spent += each.cost
    total = sum(each.cost_from_source for each in candidates)
    most = total * (USUAL_PERCENT if percent is None else percent) / 100
    if percent is None:
        most = max(most - _OWN, _FREE)
    groups = []
    for key, group in of_module.items():
        cost = sum(c.cost for c in group if c.saving)
        if len({c.record.is_cxx for c in group}) > 1:
            spent += cost  # one override cannot say how C and C++ of one name were compiled
        elif cost:
            groups.append((sum(c.saving for c in group), cost, key))
    left = {}
    for saving, cost, key in sorted(groups, key=_by_saving_of_cost):
        if spent + cost <= most:
            spent += cost
        else:
            left[key] = saving
    return left


def save(path: Path, left: Mapping[Key, float], candidates: Sequence[Candidate]) -> None:
    """Write the overrides that leave modules as they are; without any, no file."""
    if not left:
        path.unlink(missing_ok=True)
        return
    records = {c.module: c.record for c in candidates if c.module in left}
    comments = {
        key: f"{records[key].outputs[0].name}: {saving:.0f} bytes" for key, saving in left.items()
    }
    title = "Modules that 'nestor make' left as they were, and what they may save."
    from nestor.files import write_atomically

    answers = {key: records[key].is_cxx for key in left}  # True is: without the summary
    write_atomically(path, overrides.to_text(answers, comments, title))


def load(path: Path) -> set[Key]:
    """Return the modules that are left as they were; none if there is no file."""
    if not path.is_file():
        return set()
    return {key for key in overrides.load(path) if key.kind == "module"}


def concerns(record: Record, modules: Collection[Key]) -> bool:
    """Tell whether the source file of ``record`` is that of one of ``modules``."""
    sources = (word for word in record.arguments if not word.startswith("-"))
    return any(Key("module", module_id(source)) in modules for source in sources)


def _by_saving_of_cost(group: tuple[float, float, Key]) -> tuple[float, Key]:
    saving, cost, key = group
    return -saving / max(cost, 1.0), key


def _log(record: Record) -> "Trajectory | None":
    """Return the decisions of a first build about one module; None if there is no sound log."""
    logs = [] if record.logs is None else list(record.logs.glob("*.log"))
    if len(logs) != 1 or len(record.outputs) != 1:
        return None
    try:
        return read_log(logs[0])
    except NestorError:
        return None
