"""Remarks on standard error: what is worth knowing and is neither a result nor an error.

``--quiet`` turns them off, and the bars of :func:`nestor.cli.console.progress` with them. This
module is imported by the compiler wrapper: keep it quick.
"""

import sys

_silenced = False


def silence(on: bool = True) -> None:
    """Print no remarks and no progress from now on.

    :param on: False prints them again.
    """
    global _silenced
    _silenced = on


def silenced() -> bool:
    """Tell whether the user wants results and errors only."""
    return _silenced


def remark(text: str) -> None:
    """Print one line on standard error unless the user wants none."""
    if not _silenced:
        sys.stderr.write(f"nestor: {text}\n")
        sys.stderr.flush()


def report_once(stage: str, done: int, _total: int) -> None:
    """Say that the first build of a plugin takes long; a :data:`nestor.progress.Progress`."""
    if done == 0:
        remark(f"{stage} (some 20 seconds, once) …")
