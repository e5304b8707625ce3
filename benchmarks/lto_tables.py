"""The tables of ``benchmarks.lto``: by group of programs, and program by program."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.record import Table, table
from nestor.change import change_pct
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.learn.distil import trials

LOSER_PCT: Final = 0.2
"""A program that grows by more than this part of stock, in per cent, counts as a loser."""

Line = Mapping[str, Any]
Pair = tuple[float, float]
"""Linked bytes and code, or the changes of both in per cent."""

_EXPRESSION: Final = "expression templates"
GROUPS: Final[Mapping[str, Callable[[Line], bool]]] = {
    "all programs": lambda line: True,
    "C": lambda line: line["language"] == "c",
    "C++": lambda line: line["language"] == "c++",
    "C++, expression templates": lambda line: line["style"].startswith(_EXPRESSION),
    "C++, other": lambda line: (
        line["language"] == "c++" and not line["style"].startswith(_EXPRESSION)
    ),
}
"""By name, what belongs to a group."""


def tables_of(lines: Sequence[Line], policy: str) -> dict[str, Table]:
    """Return the tables ``groups``, and ``full`` and ``thin`` with a row a program,
    and ``failures`` if there are any.

    :param policy: the digest of the policy whose links are shown; searches are shown whatever
        policies they started from.
    """
    good = [line for line in lines if line["failure"] is None]
    links = [line for line in good if line["kind"] == "link" and line["policy"] == policy]
    searches = [line for line in good if line["kind"] == "search"]
    found = {"groups": _groups(links, searches)}
    for kind in ("full", "thin"):
        own = [line for line in links if line["lto"] == kind]
        by_program = {line["program"]: line for line in searches if line["lto"] == kind}
        if own:
            found[kind] = _programs(own, by_program)
    failed = [
        [line["program"], line["lto"], line["kind"], line["failure"]]
        for line in lines
        if line["failure"] is not None and line["policy"] == policy
    ]
    if failed:
        titles = ("program", "LTO", "what", "failure")
        found["failures"] = table([(title, "{}") for title in titles], failed)
    return found


def trials_table(folder: Path) -> Table:
    """Return how many programs were searched for a policy, and how much was tried."""
    files = [trials.read(path) for path in sorted(folder.glob("*.safetensors"))]
    found = [each for each in files if each is not None and len(each)]
    rows = [["searched programs", len(found)], ["trials", sum(map(len, found))]]
    return table([("training", "{}"), ("number", "{:,}")], rows)


def changes(line: Line) -> Pair:
    """Return the changes of linked bytes and code."""
    (bytes_before, code_before), (bytes_after, code_after) = line["stock"], line["made"]
    return change_pct(bytes_before, bytes_after), change_pct(code_before, code_after)


def means(lines: Sequence[Line]) -> Pair | None:
    """Return the geometric means of the changes; None without programs."""
    if not lines:
        return None
    both = [
        geometric_mean_change_pct([a["stock"][i] for a in lines], [a["made"][i] for a in lines])
        for i in (0, 1)
    ]
    return both[0], both[1]


def _groups(links: Sequence[Line], searches: Sequence[Line]) -> Table:
    rows: list[list[Any]] = []
    for of in dict.fromkeys(line["of"] for line in [*links, *searches]):
        for kind, what, lines in (
            ("full", "policy", links),
            ("thin", "policy", links),
            ("full", "search", searches),
            ("thin", "search", searches),
        ):
            own = [line for line in lines if (line["of"], line["lto"]) == (of, kind)]
            rows += [_row(of, kind, what, name, [a for a in own if belongs(a)])
                     for name, belongs in GROUPS.items() if any(map(belongs, own))]  # fmt: skip
    columns = [
        ("what", "{}"), ("programs", "{:,}"),
        ("geometric mean", record.CHANGES), ("share that gains", "{:.0f} %"),
        (f"above +{LOSER_PCT} %", "{:,}"), ("worst", record.CHANGES), ("worst program", "{}"),
        ("CPU of links", "{:.2f}"),
    ]  # fmt: skip
    return table(columns, rows)


def _row(of: str, kind: str, what: str, name: str, lines: Sequence[Line]) -> list[Any]:
    worst = max(lines, key=lambda line: changes(line)[0])
    found = [changes(line)[0] for line in lines]
    return [
        f"{name} of {of}, {kind}, {what}",
        len(lines),
        means(lines),
        100 * sum(change < 0 for change in found) / len(found),
        sum(change > LOSER_PCT for change in found),
        changes(worst),
        worst["program"],
        cpu_ratio(lines),
    ]


def cpu_ratio(lines: Sequence[Line]) -> float | None:
    """Return the CPU time of all links under the policy over that of the stock ones."""
    times = [line["cpu_seconds"] for line in lines if line["kind"] == "link"]
    before = sum(stock for stock, _ in times)
    return sum(made for _, made in times) / before if before else None


def _programs(links: Sequence[Line], searches: Mapping[str, Line]) -> Table:
    columns = [
        ("program", "{}"), ("of", "{}"), ("stock LTO", "{:,.0f}"), ("policy", record.CHANGES),
        ("CPU of a link", "{:.2f}"),
    ]  # fmt: skip
    rows = [
        [line["program"], line["of"], line["stock"][0], changes(line), cpu_ratio([line])]
        for line in sorted(links, key=lambda line: (line["of"], -changes(line)[0]))
    ]
    if searches:
        columns.insert(4, ("search", record.CHANGES))
        for row in rows:
            search = searches.get(row[0])
            row.insert(4, None if search is None else changes(search))
    return table(columns, rows)
