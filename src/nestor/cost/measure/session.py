"""Measure a table of blocks, in batches that are kept as they come."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nestor.cost.measure import rows
from nestor.cost.measure.backend import Backend
from nestor.cost.measure.rows import Row
from nestor.progress import Progress, silent

BATCH: Final = 100
"""Blocks that are lost at most when one stops: a second, or a quarter of a minute on a busy
machine."""

_SECONDS: Final = 10.0
"""Between two times that the file is written, which may be large."""


def measure(
    blocks: Sequence[bytes],
    backend: Backend,
    machine: str,
    out: Path,
    *,
    again: bool = False,
    progress: Progress = silent,
) -> list[Row]:
    """Measure the blocks that ``out`` does not have yet from this back end on this machine.

    Rows of other machines and back ends stay. ``out`` is whole at any time; it is replaced every
    few seconds and when the work ends, be it by an interrupt, and the next run goes on there.

    :param again: measure those again whose status is ``disturbed`` or ``unstable``.
    :return: the rows of ``blocks``, each block once, in order of first appearance.
    :raises TableError: if ``out`` cannot be read or written.
    """
    kept = {row.key: row for row in rows.read(out)} if out.exists() else {}
    wanted = list(dict.fromkeys(blocks))
    open_ones = [block for block in wanted if _is_open(kept, (block, backend.name, machine), again)]
    progress("Measuring", len(wanted) - len(open_ones), len(wanted))
    written = time.monotonic()
    try:
        for start in range(0, len(open_ones), BATCH):
            batch = open_ones[start : start + BATCH]
            for measurement in backend.measure(batch, silent):
                row = Row(measurement, backend.name, machine)
                kept[row.key] = row
            if time.monotonic() - written > _SECONDS:
                rows.write(list(kept.values()), out)
                written = time.monotonic()
            progress("Measuring", len(wanted) - len(open_ones) + start + len(batch), len(wanted))
    finally:
        if kept or not blocks:
            rows.write(list(kept.values()), out)
    return [kept[block, backend.name, machine] for block in wanted]


def _is_open(
    kept: dict[tuple[bytes, str, str], Row], key: tuple[bytes, str, str], again: bool
) -> bool:
    if key not in kept:
        return True
    return again and kept[key].measurement.status in ("disturbed", "unstable")
