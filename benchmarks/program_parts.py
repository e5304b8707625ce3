"""What parts of the model of whole programs are worth: it is judged without each of them.

    python -m benchmarks.program_parts FOLDER [--penalties FILE]
        [--result benchmarks/results/program_model.json]

FOLDER is that of ``python -m benchmarks.program_model``. Programs that are never fitted are left
alone here too.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.program_judge import WHOLE, errors_of, rows_of, summary
from benchmarks.regalloc_sweep import say
from nestor.compiler.toolchain import find
from nestor.cost.registry import open_model
from nestor.program_cost import penalties as machines
from nestor.program_cost import quantities

PARTS: Final[dict[str, tuple[str, float | Callable[..., Any]]]] = {
    "all of it": ("_WINDOW", 512.0),
    "short loops beside their next entry": ("_WINDOW", 1e-9),
    "pointers that are followed": ("follows_pointers", lambda code: False),
    "passes that share no memory": ("passes_apart", lambda code: code),
}
"""By title, the name in ``quantities`` that a part hangs on, and what takes it away."""


def main() -> None:
    """Read the command line and judge the model without each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--penalties")
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    model, penalties = open_model("shipped"), machines.named(words.penalties)
    lines: list[list[Any]] = []
    for title, (name, value) in PARTS.items():
        before = getattr(quantities, name)
        setattr(quantities, name, value)
        rows = [row for row in rows_of(words.work, model, penalties)[0] if not row.run.untouched]
        setattr(quantities, name, before)
        errors = errors_of(rows, WHOLE)[0]
        mean, median, largest, _ = summary(errors, list(errors))
        lines.append([title if not lines else f"without {title}", mean, median, largest])
        say(f"{lines[-1][0]:50} mean {mean:.1f} % median {median:.1f} %")
    columns = [
        ("model", "{}"),
        ("mean", "{:.1f} %"),
        ("median", "{:.1f} %"),
        ("largest", "{:.0f} %"),
    ]
    if words.result is not None:
        record.write(
            words.result, "Cycles of whole programs, predicted.",
            {"parts": record.table(columns, lines)}, machine.describe(find()),
        )  # fmt: skip


if __name__ == "__main__":
    main()
