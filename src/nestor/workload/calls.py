"""The file of a corpus with the calls of each program's functions in a run.

Where modules carry no profile, problems weight the cost of a function with them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nestor.corpus.files import write_json
from nestor.corpus.layout import LIMIT
from nestor.corpus.model import CorpusError
from nestor.files import ReadError, locked, read_regular

CALLS: Final = "calls.json"
"""In the folder of a corpus; written by ``nestor workload calls``."""

CallsByProgram = Mapping[str, Mapping[str, int]]
"""Calls by the name of the program and the symbol of the function; one that is absent there was not
called."""

_LOCK: Final = ".calls.lock"
_MOST: Final = 1 << 63


def read_calls(root: Path) -> CallsByProgram:
    """Return the calls in the corpus at ``root``; none if it has no file of them.

    :raises CorpusError: if the file cannot be read, or holds something else.
    """
    path = root / CALLS
    try:
        content = json.loads(read_regular(path, "calls of functions", limit=LIMIT))
    except ReadError as error:
        if error.absent:
            return {}
        raise CorpusError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _no_calls(path, f"{error}") from None
    if not isinstance(content, dict) or not all(map(_are_calls, content.values())):
        raise _no_calls(path, "it is not {PROGRAM: {FUNCTION: CALLS}}")
    return content


def add_calls(root: Path, program: str, calls: Mapping[str, int]) -> None:
    """Write the calls of one program into the file, in place of its earlier ones.

    Several threads and processes may do so at the same time.

    :raises CorpusError: if there is a file that holds something else.
    """
    with locked(root / _LOCK):
        content = {**read_calls(root), program: dict(calls)}
        write_json(root / CALLS, dict(sorted(content.items())))


def _are_calls(value: object) -> bool:
    return isinstance(value, dict) and all(
        type(calls) is int and 0 <= calls < _MOST for calls in value.values()
    )


def _no_calls(path: Path, why: str) -> CorpusError:
    return CorpusError(f"{path} holds no calls of functions ({why}): remove it.")
