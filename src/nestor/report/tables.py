"""The data of the page: modules, functions and decisions of a program as packed columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.problem.overrides import OverrideFormat
from nestor.problem.problem import Problem
from nestor.problem.trajectory import Trajectory
from nestor.report.packing import Pack
from nestor.report.sides import ModuleSide, Side, Sides

_NAMES: Final = ("caller", "callee", "function")
"""Columns of trajectories that hold ids of functions."""
_KEYS: Final = ("site", "copy_of")
"""Columns that hold other 64-bit identifiers."""
_OWN: Final = ("answer", "logit", "log_probability", "overridden", "effect", *_NAMES, *_KEYS)
"""Columns that are no features; the column of the default is one more."""
_MOST_WORDS: Final = 64
"""An answer that takes more values than that is shown as a number."""


@dataclass
class _Strings:
    """Texts, each once."""

    texts: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """Return the place of ``text``."""
        if text not in self.places:
            self.places[text] = len(self.texts)
            self.texts.append(text)
        return self.places[text]


def page_data(
    problem: Problem,
    sides: Sides,
    readable: Mapping[str, str] | None = None,
    source: str = "",
) -> tuple[dict[str, Any], Pack]:
    """Return the description of the page's data, and the blobs that it refers to.

    :param readable: names of functions as people write them, by symbol.
    :param source: the address of a line of the source, with ``{file}`` and ``{line}``; empty for
        no links.
    """
    pack, names, places = Pack(), _Strings(), _Strings()
    places.place("")
    modules = list(sides.default.modules)
    report = problem.report
    functions = _functions(pack, names, places, sides, modules, report.decimals)
    decisions = [_decisions(pack, names, places, problem, sides, side) for side in sides.policies]
    found = readable or {}
    data: dict[str, Any] = {
        "program": sides.program,
        "problem": problem.name,
        "question": problem.summary,
        "level": sides.level,
        "score": report.score,
        "unit": report.unit,
        "quantity": report.quantity,
        "columns": list(report.columns),
        "sides": [
            {
                "name": _label(side, sides),
                "policy": side.policy.name,
                "digest": side.policy.digest,
                "columns": {c: side.columns[c] for c in report.columns if c in side.columns},
            }
            for side in sides.all
        ],
        "parts": "weighed" if problem.scores_units else "run",
        "overrides": _overrides(problem, sides),
        "modules": {
            "rows": len(modules),
            "names": modules,
            "scores": [
                pack.column(np.array([side.modules[n].total for n in modules], float), 1)
                for side in sides.all
            ],
        },
        "functions": functions,
        "decisions": decisions,
    }
    data["names"] = pack.text(names.texts)
    data["readable"] = pack.text([_other(found, name) for name in names.texts])
    data["places"] = pack.text(places.texts)
    data["source"] = source
    return data, pack


def _other(readable: Mapping[str, str], name: str) -> str:
    """Return the readable form of ``name``, empty where it is the name itself."""
    text = readable.get(name, "")
    return "" if text == name else text


def _functions(
    pack: Pack,
    names: _Strings,
    places: _Strings,
    sides: Sides,
    modules: Sequence[str],
    decimals: int,
) -> dict[str, Any]:
    """Pack a row for each function of each module that has a score under any policy."""
    rows: list[tuple[int, str]] = []
    for number, module in enumerate(modules):
        own = dict.fromkeys(n for side in sides.all for n in side.modules[module].parts)
        rows += [
            (number, name)
            for name in own
            if any(side.modules[module].parts.get(name) for side in sides.all)
        ]
    scores = [
        np.array([side.modules[modules[m]].parts.get(name, 0.0) for m, name in rows], float)
        for side in sides.all
    ]
    counts = [_question_counts(side, modules) for side in sides.policies]
    return {
        "rows": len(rows),
        "module": pack.column(np.array([m for m, _ in rows], np.int64)),
        "name": pack.column(np.array([names.place(name) for _, name in rows], np.int64)),
        "place": pack.column(
            np.array([places.place(_defined(sides, modules[m], n)) for m, n in rows], np.int64)
        ),
        "asked": [_counts(pack, own, rows, 0) for own in counts],
        "left": [_counts(pack, own, rows, 1) for own in counts],
        "scores": [pack.column(values, max(decimals, 1)) for values in scores],
    }


def _defined(sides: Sides, module: str, name: str) -> str:
    """Return where a function is defined, as far as any compile says it."""
    found = (side.modules[module].places.functions.get(name) for side in sides.all)
    return next(filter(None, found), "")


_Counts = Mapping[tuple[int, str], tuple[int, int]]


def _question_counts(side: Side, modules: Sequence[str]) -> _Counts:
    """Return how many questions were asked in each function, and how many left the default."""
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for number, module in enumerate(modules):
        log = side.modules[module].trajectory
        own = next(
            (n for n in ("caller", "function") if n in (log.decisions.dtype.names or ())), ""
        )
        if not own or not len(log):
            continue
        ids, inverse = np.unique(log.decisions[own].view("<u8"), return_inverse=True)
        total = np.bincount(inverse)
        left = np.bincount(inverse, weights=log.answer != log.default)
        for key, all_of, some in zip(ids.tolist(), total.tolist(), left.tolist(), strict=True):
            found[number, log.names.get(key, f"{key:016x}")] = (all_of, int(some))
    return found


def _counts(
    pack: Pack, counts: _Counts, rows: Sequence[tuple[int, str]], which: int
) -> dict[str, Any]:
    return pack.column(np.array([counts.get(row, (0, 0))[which] for row in rows], np.int64))


def _decisions(
    pack: Pack,
    names: _Strings,
    places: _Strings,
    problem: Problem,
    sides: Sides,
    side: Side,
) -> dict[str, Any]:
    """Pack a row for each decision under one policy."""
    modules = list(side.modules.values())
    logs = [module.trajectory for module in modules]
    answer, default = _joined(logs, "answer"), _joined(logs, problem.default_column)
    columns: dict[str, npt.NDArray[Any]] = {
        "module": np.repeat(np.arange(len(logs)), [len(log) for log in logs]),
        "default": default,
        "answer": answer,
        "left": answer != default,
        "share": _concatenated([m.credit.share for m in modules]),
        "change": _concatenated([m.credit.change for m in modules]),
    }
    stands = [place for module in modules for place in _questions(module)]
    if any(stands):
        columns["place"] = np.array([places.place(text) for text in stands], np.int64)
    present = set.intersection(*(set(log.decisions.dtype.names or ()) for log in logs))
    for name in ("logit", "overridden", "effect", "question"):
        if name in present:
            columns[name] = _joined(logs, name)
    for name in _NAMES:
        if name in present:
            columns[name] = _concatenated([_places(log, name, names) for log in logs])
    if "site" in present:
        columns["site"] = _joined(logs, "site").view("<u8")
        if len(sides.policies) > 1:
            other = next(o for o in sides.policies if o is not side)
            columns["other"] = _answers_of(other, side)
    elif "function" in present:
        columns["id"] = _joined(logs, "function").view("<u8")
    own = {*_OWN, "question", problem.default_column}
    features = [
        name
        for name in (logs[0].features if logs[0].candidates is None else ())
        if name not in own and all(name in log.features for log in logs)
    ]
    return {
        "rows": len(answer),
        "columns": {
            name: pack.column(values, 3 if values.dtype.kind == "f" else None)
            for name, values in columns.items()
        },
        "features": {name: pack.column(_joined(logs, name)) for name in features},
        "measured": pack.text(_measurements(modules)),
        "words": _words(problem, answer, default),
        "effects": _effects(problem, logs) if "effect" in present else {},
    }


def _questions(module: ModuleSide) -> Sequence[str]:
    """Return where each decision stands, empty texts where that is not recorded."""
    return module.places.questions or ("",) * len(module.trajectory)


def _joined(logs: Sequence[Trajectory], name: str) -> npt.NDArray[Any]:
    return _concatenated([log.decisions[name] for log in logs])


def _concatenated(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0)


def _places(log: Trajectory, column: str, names: _Strings) -> npt.NDArray[Any]:
    """Return the places of the functions' names of a column, ``[questions]``."""
    ids, inverse = np.unique(log.decisions[column].view("<u8"), return_inverse=True)
    places = [names.place(log.names.get(key, f"{key:016x}")) for key in ids.tolist()]
    return np.array(places, np.int64)[inverse]


def _answers_of(other: Side, side: Side) -> npt.NDArray[Any]:
    """Return what another policy answers to the same questions; −1 where it was not asked."""
    found: list[npt.NDArray[Any]] = []
    for name, module in side.modules.items():
        theirs, ours = other.modules[name].trajectory, module.trajectory
        if len(theirs) == 0:
            found.append(np.full(len(ours), -1.0))
            continue
        order = np.argsort(theirs.decisions["site"], kind="stable")
        sorted_keys = theirs.decisions["site"][order]
        at = np.searchsorted(sorted_keys, ours.decisions["site"]).clip(0, len(theirs) - 1)
        same = sorted_keys[at] == ours.decisions["site"]
        found.append(np.where(same, theirs.answer[order][at].astype(float), -1.0))
    return _concatenated(found)


def _measurements(modules: Sequence[ModuleSide]) -> list[list[float]]:
    """Return pairs of a decision's row in the table and what it changed."""
    pairs, first = [], 0
    for module in modules:
        pairs += [[first + row, round(v, 2)] for row, v in sorted(module.measured.items())]
        first += len(module.trajectory)
    return pairs


def _words(problem: Problem, *answers: npt.NDArray[Any]) -> dict[str, str]:
    """Return how the answers read, by their value; empty if there are too many."""
    values = np.unique(np.concatenate(answers))
    if len(values) > _MOST_WORDS:
        return {}
    return {f"{value:g}": problem.word(value) for value in values.tolist()}


def _effects(problem: Problem, logs: Sequence[Trajectory]) -> dict[str, str]:
    """Return what became of answers, in words by the value of the column."""
    found: dict[str, str] = {}
    for log in logs:
        values, rows = np.unique(log.decisions["effect"], return_index=True)
        for value, row in zip(values.tolist(), rows.tolist(), strict=True):
            if str(value) not in found:
                found[str(value)] = str(problem.describe(log, row).get("effect", value))
    return found


def _overrides(problem: Problem, sides: Sides) -> dict[str, Any]:
    """Return how the page writes overrides.

    A decision is named by its site in its module where trajectories have sites, else by its
    function, which is left to stock.
    """
    form = problem.overrides()
    logs = [module.trajectory for module in sides.default.modules.values()]
    present = {name for log in logs for name in log.decisions.dtype.names or ()}
    return {
        "header": form.to_text({}).split("\n")[0],
        "kind": "site" if "site" in present else "function",
        "answers": [problem.word(answer) for answer in (0, 1)] if "site" in present else [],
        "modules": [str(form.unit(log)) for log in logs],
        "base": [] if sides.overrides is None else _lines(form, sides.overrides),
    }


def _lines(form: OverrideFormat, overrides: str) -> list[str]:
    """Return the lines of a text of overrides without its header and comments."""
    lines = form.to_text(form.parse(overrides)).split("\n")[1:]
    return [bare for line in lines if (bare := line.partition("#")[0].strip())]


def _label(side: Side, sides: Sides) -> str:
    """Return what the page calls a side."""
    overridden = sides.overrides is not None and side is not sides.default
    return f"{side.policy.name} + overrides" if overridden else side.policy.name
