"""What was decided about the calls on one line of the source, and why.

A module is compiled under the policy with a log and the places of its questions, and once by the
stock compiler with the remarks of its own heuristic. What a decision costs or saves is measured by
compiling the module again with this decision alone answered the other way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nestor.build.build import BuildError
from nestor.compiler.invocation import compile_command
from nestor.compiler.process import run
from nestor.corpus.model import Module
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Overrides
from nestor.problem.places import CompilerRemark, read_remarks, remark_flags
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

_MOST_INFLUENCES = 5


@dataclass(frozen=True)
class Line:
    """One line of a source file; the file may be the last parts of its path."""

    file: str
    number: int

    @staticmethod
    def parse(text: str) -> "Line":
        """Read ``FILE:LINE``; a column behind it is left out.

        :raises NestorError: if it is not of this form.
        """
        parts = text.split(":")
        while len(parts) > 2 and parts[-1].isdigit() and parts[-2].isdigit():
            parts.pop()
        if len(parts) < 2 or not parts[-1].isdigit() or not parts[0]:
            raise NestorError(f"'{text}' is no FILE:LINE, such as src/parse.c:120.")
        return Line(":".join(parts[:-1]).removeprefix("./"), int(parts[-1]))

    def holds(self, place: str) -> bool:
        """Tell whether ``place`` (``FILE:LINE:COLUMN``) is on this line."""
        file, line = _file_and_line(place)
        return line == self.number and same_file(file, self.file)


def same_file(one: str, other: str) -> bool:
    """Tell whether one path is the other, or its last parts."""
    mine, theirs = Path(one).parts, Path(other).parts
    length = min(len(mine), len(theirs))
    return bool(length) and mine[-length:] == theirs[-length:]


@dataclass(frozen=True)
class Influence:
    """What one feature does to a policy's answer."""

    feature: str
    value: float
    usual: float
    """Its median over the questions of the module."""
    change: float
    """The logit less what it were if the feature had its usual value."""


@dataclass(frozen=True)
class LineDecision:
    """One question about a call on the line."""

    module: str
    place: str
    about: Mapping[str, Any]
    """As :meth:`nestor.problem.problem.Problem.describe` gives it."""
    by_policy: bool
    """Else the default answered: the policy is the default, or was not trained on such values."""
    stock: str
    """What stock says of it; empty if it is not asked there."""
    influences: tuple[Influence, ...]
    """The largest first; none of a policy that is no function of single features."""
    measured: Mapping[str, float] | None
    """The change of the module's columns by this answer, against the other one; None if it was
    not measured."""
    override: str
    """The line of an overrides file that answers it the other way; empty if there is none."""
    instead_of: tuple[str, ...]
    """Lines of the overrides in use whose place it takes: beside them it might change nothing."""


@dataclass(frozen=True)
class LineReport:
    """All that is found of one line."""

    line: Line
    decisions: tuple[LineDecision, ...]
    others: tuple[tuple[str, str, str], ...]
    """Module, place and remark of the stock compiler about calls of which no policy is asked."""
    modules: int
    """How many were compiled."""
    near: tuple[int, ...]
    """Lines of the same file with decisions, the nearest first, if there is none on this one."""


def explain(
    pool: Pool,
    modules: Sequence[Module],
    policy: NamedPolicy,
    line: Line,
    *,
    overrides: str | None = None,
    summary: str | None = None,
    measure: int = 8,
    progress: Progress = silent,
) -> LineReport:
    """Explain the decisions about the calls on ``line``.

    :param modules: those with line numbers in which the line may be.
    :param overrides: the text of a file of overrides.
    :param summary: the text of the program's summary.
    :param measure: how many decisions are measured at most, each by the compile of a module.
    :raises BuildError: if a module cannot be compiled.
    :raises NestorError: if the modules have no line numbers.
    """
    requests = [
        Request(m, policy, overrides=overrides, summary=summary, log=True, names=True, places=True)
        for m in modules
    ]
    done = pool.run(requests, progress, f"Compiling {policy.name}")
    failed = next((r for r in done if r.trajectory is None or r.places is None), None)
    if failed is not None:
        raise BuildError(f"{failed.request.unit.name}: {failed.failure}.")
    remarks = pool.map(lambda m: _stock_remarks(pool, m), modules, progress, "Stock")
    if not any(remark.place for own in remarks for remark in own):
        raise NestorError(
            "The modules have no line numbers; capture them with 'nestor corpus capture --lines',"
            " or name a compile after --."
        )
    decisions: list[LineDecision] = []
    others: list[tuple[str, str, str]] = []
    for rollout, said in zip(done, remarks, strict=True):
        found = _decisions(pool, rollout, said, line, measure - len(decisions), progress)
        decisions += found
        shown = {(d.place, d.about.get("callee")) for d in found}
        others += [
            (rollout.request.unit.name, remark.place, remark.message)
            for remark in dict.fromkeys(said)
            if line.holds(remark.place) and (remark.place, remark.argument("Callee")) not in shown
        ]
    near: tuple[int, ...] = ()
    if not decisions and not others:
        near = _near(line, [p for r in done if r.places for p in r.places.questions])
    return LineReport(line, tuple(decisions), tuple(dict.fromkeys(others)), len(modules), near)


def candidates(modules: Sequence[Module], line: Line) -> list[Module]:
    """Return the modules of the file, by their names; all if there are none: a header, say."""
    stem = str(Path(line.file).with_suffix(""))
    own = [m for m in modules if same_file(str(Path(m.name).with_suffix("")), stem)]
    own = own or [m for m in modules if same_file(m.name.removesuffix(".o"), line.file)]
    return own or list(modules)


def _stock_remarks(pool: Pool, module: Module) -> tuple[CompilerRemark, ...]:
    """Return what the stock heuristic says of the calls of a module."""
    place = pool.place
    with temporary_folder("remarks") as text:
        folder = Path(text)
        command = compile_command(
            place.plugin.toolchain,
            module.options,
            place.corpus.bitcode(module),
            folder / "module.o",
            remark_flags(folder / "remarks", *pool.problem.remark_passes),
        )
        process = run(command, place.limits, cancelled=place.cancelled)
        if not process.ok:
            raise BuildError(f"{module.name}: {process.reason}.")
        return tuple(read_remarks(folder / "remarks"))


def _decisions(
    pool: Pool,
    rollout: Rollout,
    said: Sequence[CompilerRemark],
    line: Line,
    measure: int,
    progress: Progress,
) -> list[LineDecision]:
    assert rollout.trajectory is not None and rollout.places is not None
    log, problem = rollout.trajectory, pool.problem
    rows = [row for row, place in enumerate(rollout.places.questions) if line.holds(place)]
    flips = [_flip(pool, log, row) for row in rows]
    measured = _measured(pool, rollout, flips[: max(0, measure)], progress)
    found = []
    for number, (row, flip) in enumerate(zip(rows, flips, strict=True)):
        about = problem.describe(log, row)
        place = rollout.places.questions[row]
        stock = [
            remark.message
            for remark in said
            if remark.place == place
            and remark.argument("Callee") == about.get("callee")
            and remark.function == about.get("caller")
        ]
        found.append(
            LineDecision(
                module=rollout.request.unit.name,
                place=place,
                about=about,
                by_policy=bool(log.by_policy[row]),
                stock=stock[-1] if stock else "",
                influences=_influences(rollout.request.policy, log, row),
                measured=measured[number] if number < len(measured) else None,
                override=flip,
                instead_of=_instead_of(pool, rollout.request.overrides, flip),
            )
        )
    return found


def _flip(pool: Pool, log: Trajectory, row: int) -> str:
    """Return the line of an overrides file that answers a question the other way."""
    if "site" not in (log.decisions.dtype.names or ()):
        return ""
    form = pool.problem.overrides()
    module = str(form.unit(log)).split()[-1]
    site = int(log.decisions["site"][row]) % 2**64
    return f"site {site:016x} in {module} {pool.problem.word(not log.answer[row])}"


def _instead_of(pool: Pool, overrides: str | None, flip: str) -> tuple[str, ...]:
    """Return the lines of ``overrides`` whose place the line ``flip`` takes."""
    return pool.problem.overrides().lines_about(overrides, _parsed(pool, flip)) if flip else ()


def _parsed(pool: Pool, flip: str) -> Overrides:
    """Return what one line of an overrides file says."""
    form = pool.problem.overrides()
    header = form.to_text({}).split("\n")[0]
    return form.parse(f"{header}\n{flip}\n")


def _measured(
    pool: Pool, rollout: Rollout, flips: Sequence[str], progress: Progress
) -> list[Mapping[str, float] | None]:
    """Return the changes of the module's columns by the answers that ``flips`` turn round."""
    own = rollout.request
    if not flips:
        return []
    form = pool.problem.overrides()
    requests = []
    for flip in flips:
        text = form.replaced(own.overrides, _parsed(pool, flip))
        requests.append(Request(own.unit, own.policy, overrides=text, summary=own.summary))
    with_it = pool.problem.columns(rollout.outcome)
    found: list[Mapping[str, float] | None] = []
    for other in pool.run(requests, progress, "Measuring"):
        if other.outcome is None:
            found.append(None)
            continue
        without = pool.problem.columns(other.outcome)
        found.append({name: with_it[name] - without[name] for name in with_it})
    return found


def _influences(policy: NamedPolicy | None, log: Trajectory, row: int) -> tuple[Influence, ...]:
    """Return what single features do to the logit, by giving each its usual value."""
    own = None if policy is None else policy.policy
    if own is None or log.candidates is not None or not own.features:
        return ()
    try:
        rows = log.rows(own.features)
    except NestorError:  # a policy whose features are not in a log
        return ()
    usual = np.median(rows, axis=0)
    tried = np.repeat(rows[row : row + 1], len(own.features) + 1, axis=0)
    np.fill_diagonal(tried[1:], usual)
    logits = own.logits(tried)
    changes = logits[0] - logits[1:]
    order = np.argsort(-np.abs(changes), kind="stable")[:_MOST_INFLUENCES]
    return tuple(
        Influence(own.features[n], float(rows[row, n]), float(usual[n]), float(changes[n]))
        for n in order.tolist()
        if changes[n] != 0
    )


def _near(line: Line, places: Sequence[str]) -> tuple[int, ...]:
    numbers = {number for file, number in map(_file_and_line, places) if same_file(file, line.file)}
    return tuple(sorted(numbers, key=lambda n: (abs(n - line.number), n))[:5])


def _file_and_line(place: str) -> tuple[str, int]:
    file, _, _column = place.rpartition(":")
    file, _, line = file.rpartition(":")
    return (file, int(line)) if line.isdigit() else (place, 0)
