"""Fill the tables and figures of README.md and docs/ from benchmarks/results/*.json.

    python -m benchmarks.tables            # rewrite what is stale
    python -m benchmarks.tables --check    # change nothing; exit status 1 if something is stale

A page marks what is generated, so that a number stands in one place only:

    <!-- table: search.programs -->             table `programs` of benchmarks/results/search.json
    <!-- table: search.programs source -->      … and below it the command and the date
    <!-- table: search.programs columns=program;25 -->
    <!-- value: guard.modes[gc][guarded] -->    one cell: row by its first cell, then the column
    <!-- value: guard.cpu_minutes {:.0f} -->    one entry of the file, with a format if need be

and closes each mark with `<!-- end -->`. A result file holds `about`, `command`, `date` and
`tables`; a table holds `columns` (pairs of title and format) and `rows`. Files that benchmarks
write in a form of their own have a function in result_tables.py that makes a table of them.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from benchmarks.result_tables import RESULTS, TABLES, StaleMarkError, Table, cell, result

__all__ = ["RESULTS", "StaleMarkError", "filled", "main", "pages", "table"]

ROOT: Final = Path(__file__).resolve().parent.parent
_MARK: Final = re.compile(
    r"(?P<open><!-- (?P<kind>table|value): (?P<what>.+?) -->)(?P<body>.*?)(?P<close><!-- end -->)",
    re.DOTALL,
)
_VALUE: Final = re.compile(
    r"(?P<path>[\w.-]+?)(\[(?P<row>[^\]]+)\]\[(?P<column>[^\]]+)\])?( (?P<form>\{.+))?"
)


def pages() -> list[Path]:
    """Return the Markdown files that may hold marks."""
    return [
        ROOT / "README.md",
        ROOT / "benchmarks" / "README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
    ]


def filled(text: str) -> str:
    """Return a page's text with every marked region made from the result files."""

    def region(mark: re.Match[str]) -> str:
        make = _table_text if mark["kind"] == "table" else _value_text
        return f"{mark['open']}{make(mark['what'])}{mark['close']}"

    return _MARK.sub(region, text)


def main() -> int:
    """Fill the pages, or with ``--check`` name those that are stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    options = parser.parse_args()
    stale = []
    for page in pages():
        text = page.read_text()
        try:
            new = filled(text)
        except StaleMarkError as error:
            sys.stderr.write(f"{page.relative_to(ROOT)}: {error}\n")
            return 1
        if new != text:
            stale.append(page.relative_to(ROOT))
            if not options.check:
                page.write_text(new)
    for name in stale:
        print(f"{name}: {'stale; run python -m benchmarks.tables' if options.check else 'filled'}")
    return 1 if stale and options.check else 0


def table(name: str) -> Table:
    """Return a table by ``FILE.TABLE``: one of :data:`TABLES`, or one of the file."""
    if name in TABLES:
        return TABLES[name]()
    file, _, key = name.partition(".")
    tables = result(file).get("tables", {})
    if key not in tables:
        raise StaleMarkError(f"benchmarks/results/{file}.json has no table '{key}'.")
    found: Table = tables[key]
    return found


def _table_text(what: str) -> str:
    name, *options = what.split(" ", 1)
    content = table(name)
    columns, rows = content["columns"], content["rows"]
    source = bool(options) and options[0].startswith("source")
    chosen = options[0].partition("columns=")[2] if options else ""
    if chosen:
        titles = [title for title, _ in columns]
        if absent := [title for title in chosen.split(";") if title not in titles]:
            raise StaleMarkError(f"Table '{name}' has no column '{absent[0]}'.")
        places = [titles.index(title) for title in chosen.split(";")]
        columns = [columns[place] for place in places]
        rows = [[row[place] for place in places] for row in rows]
    lines = [_line(title for title, _ in columns)]
    lines.append("|" + "|".join("---" if form == "{}" else "---:" for _, form in columns) + "|")
    lines += [
        _line(cell(v, form) for v, (_, form) in zip(row, columns, strict=True)) for row in rows
    ]
    text = "\n".join(lines)
    return f"\n{text}\n" + (f"\n{_source(name.partition('.')[0])}\n" if source else "")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _source(name: str) -> str:
    content = result(name)
    commands = content["command"]
    commands = [commands] if isinstance(commands, str) else commands
    code = "\n".join(commands)
    link = f"benchmarks/results/{name}.json"
    return f"Recorded on {content['date']} ({link}), produced with\n```\n{code}\n```"


def _value_text(what: str) -> str:
    match = _VALUE.fullmatch(what)
    if match is None:
        raise StaleMarkError(f"'{what}' names no value.")
    if match["row"] is None:
        file, *keys = match["path"].split(".")
        value = result(file)
        for key in keys:
            if key not in value:
                raise StaleMarkError(f"benchmarks/results/{file}.json has no '{'.'.join(keys)}'.")
            value = value[key]
        return cell(value, match["form"] or "{:,}")
    content = table(match["path"])
    titles = [title for title, _ in content["columns"]]
    rows = [row for row in content["rows"] if str(row[0]).strip("*") == match["row"]]
    if match["column"] not in titles or not rows:
        raise StaleMarkError(f"There is no '{what}'.")
    place = titles.index(match["column"])
    return cell(rows[0][place], match["form"] or content["columns"][place][1])


if __name__ == "__main__":
    sys.exit(main())
