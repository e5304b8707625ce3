"""Read a list of measured runs: program, table of events, cycles."""

import csv
import math
from pathlib import Path

from nestor.cost.contract import CostModel
from nestor.events import table as tables
from nestor.files import read_regular_text
from nestor.program_cost.penalties import Penalties
from nestor.program_cost.quantities import quantities
from nestor.program_cost.weights import MeasuredRun, WeightsError

_HEADER = ("program", "events", "cycles")


def read(path: Path, model: CostModel, penalties: Penalties) -> list[MeasuredRun]:
    """Return the runs that a CSV file lists, with the quantities of each.

    :raises NestorError: if the file or a table is of another kind.
    """
    lines = read_regular_text(path, "measured runs").splitlines()
    found = []
    try:
        rows = csv.DictReader(lines)
        if not set(_HEADER) <= set(rows.fieldnames or ()):
            raise WeightsError(f"'{path}' has no header '{','.join(_HEADER)}'; add it.")
        for row in rows:
            cycles = float(row["cycles"])
            if not (math.isfinite(cycles) and cycles > 0):
                raise ValueError(f"'{row['cycles']}' are no cycles")
            table = tables.read(path.parent / row["events"])
            totals = quantities(table, model, penalties).totals()
            found.append(
                MeasuredRun(row["events"], row["program"], totals, cycles, table.instructions)
            )
    except (csv.Error, ValueError, TypeError) as error:
        raise WeightsError(
            f"'{path}' is no list of lines '{','.join(_HEADER)}' ({error}); correct it."
        ) from None
    return found
