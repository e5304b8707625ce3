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

from benchmarks import record
from benchmarks.program_judge import WHOLE, errors_of, fitted_rows, summary, write
from benchmarks.regalloc_sweep import say
from nestor.cost.registry import open_model_for
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
    parser.add_argument("--machine")
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    model = open_model_for("shipped", words.machine, penalties.machine)
    lines: list[list[Any]] = []
    for title, (name, value) in PARTS.items():
        before = getattr(quantities, name)
        setattr(quantities, name, value)
        rows = fitted_rows(words.work, model, penalties)
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
    write(words.result, words.work, {"parts": record.table(columns, lines)})


if __name__ == "__main__":
    main()
