"""Write what a benchmark measured to a result file that ``benchmarks.tables`` can read."""

import datetime
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.machine import describe
from benchmarks.result_tables import cell
from nestor.compiler.toolchain import find
from nestor.files import write_atomically

Table = Mapping[str, Any]
"""``columns``, pairs of title and format, and ``rows``."""

CHANGES: Final = "{:+.2f} / {:+.2f} %"
"""The format of a cell with two changes: of linked bytes, and of code."""

_DECIMALS: Final = 4


def table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table as result files hold it.

    :param columns: titles and formats, such as ``{:+.2f} %``; ``{}`` for text.
    :param rows: a cell for each column: a number, text, None, or numbers that share a cell.
    """
    return {"columns": [list(column) for column in columns], "rows": [list(row) for row in rows]}


def show(tables: Mapping[str, Table]) -> None:
    """Print tables with their names, cells as they stand in a page."""
    for name, found in tables.items():
        forms = [form for _, form in found["columns"]]
        print(f"\n{name}")
        print(" | ".join(title for title, _ in found["columns"]))
        for row in found["rows"]:
            print(" | ".join(cell(value, form) for value, form in zip(row, forms, strict=True)))


def mean_changes(changes: npt.ArrayLike) -> list[float]:
    """Return the geometric mean of each column of ``changes``, all in per cent."""
    logarithms = np.log1p(np.asarray(changes, dtype=np.float64) / 100)
    return [float(x) for x in 100 * np.expm1(logarithms.mean(axis=0))]


def with_interval(mean: float, interval: Sequence[float] | None) -> list[float] | str:
    """Return the cell of a mean change with its interval; without one, the mean as text.

    :param interval: its two ends, None for programs of a single project.
    """
    return f"{mean:+.2f} %".replace("-", "−") if interval is None else [mean, *interval]


def json_lines(path: Path, *, may_lack: bool = False) -> list[Any]:
    """Return what the lines of a file hold, a JSON value each.

    :param may_lack: whether a file that is not there has no lines, as before a first run.
    """
    if may_lack and not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def add_lines(path: Path, *lines: Any) -> None:
    """Write ``lines`` behind what :func:`json_lines` reads from ``path``."""
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def write(
    path: Path, about: str, tables: Mapping[str, Table], machine: Mapping[str, str], **values: Any
) -> None:
    """Write ``tables`` and ``values`` to the result file ``path``, whole or not at all.

    A file that exists keeps what other benchmarks have written, its description, and the commands
    for tables that stay as they are.

    :param about: the description of a new file.
    :param machine: see :func:`benchmarks.machine.describe`.
    """
    before = json.loads(path.read_text()) if path.exists() else {}
    before.pop("transcribed_from", None)
    earlier = before.get("command", [])
    earlier = [earlier] if isinstance(earlier, str) else earlier
    others = before.get("tables", {}).keys() - tables.keys()
    own = command([])
    kept = [line for line in earlier if others or not line.startswith(own)]
    content = {
        "about": about,
        **before,
        "command": list(dict.fromkeys([*kept, command(sys.argv[1:])])),
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "machine": dict(machine),
        **values,
        "tables": before.get("tables", {}) | dict(tables),
    }
    write_atomically(path, _text(_rounded(content)) + "\n")


def publish(path: Path | None, about: str, tables: Mapping[str, Table], **values: Any) -> None:
    """Print ``tables``, and write them by :func:`write` if there is a ``path``."""
    show(tables)
    if path is not None:
        write(path, about, tables, describe(find()), **values)


def command(arguments: Sequence[str]) -> str:
    """Return the command line of this benchmark, without ``--json FILE``.

    Folders are given by their names in capitals, files by their names, as in benchmarks/README.md.
    """
    words = list(arguments)
    if "--json" in words:
        place = words.index("--json")
        del words[place : place + 2]
    spec = sys.modules["__main__"].__spec__
    name = spec.name.removesuffix(".__main__") if spec is not None else Path(sys.argv[0]).stem
    return shlex.join(["python", "-m", name, *map(_shown, words)])


def _shown(word: str) -> str:
    path = Path(word)
    if path.is_dir():
        return path.resolve().name.upper()
    return path.name if path.is_file() else word


def _commit() -> str | None:
    here = Path(__file__).resolve().parent
    words = ["git", "-C", str(here), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def _text(value: Any, depth: int = 0, key: str = "") -> str:
    """Return ``value`` as JSON with a line for each entry, and for each row of a table."""
    pad = " " * (depth + 1)
    if isinstance(value, dict) and value:
        lines = [
            f"{pad}{json.dumps(name)}: {_text(one, depth + 1, name)}" for name, one in value.items()
        ]
        return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"
    if isinstance(value, list) and value and (key == "rows" or isinstance(value[0], str)):
        lines = [pad + json.dumps(one, ensure_ascii=False) for one in value]
        return "[\n" + ",\n".join(lines) + "\n" + " " * depth + "]"
    return json.dumps(value, ensure_ascii=False)
