"""How often each function of a module is called: what its cost per call is multiplied by.

In this order: the entries of a profile that the module carries; the calls that were measured on the
profile workloads of the programs that hold the module, in the file :data:`CALLS` of the corpus; one
call of each function where neither is there.
"""

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nestor.corpus.model import Corpus, CorpusError, Module
from nestor.files import ReadError, read_regular
from nestor.regalloc.allocation_log import FunctionAllocation

CALLS: Final = "calls.json"
"""In the folder of a corpus: calls by program and symbol, ``{PROGRAM: {FUNCTION: CALLS}}``."""

_LARGEST: Final = 1 << 28
"""Bytes of the file, at most."""

Calls = Mapping[str, float]
"""By the symbol's name."""


def weights(functions: Sequence[FunctionAllocation], measured: Calls | None) -> list[float]:
    """Return the weight of each function, ``[functions]``.

    :param measured: calls by symbol; a function that is not among them was not called. None where
        nothing was measured.
    """
    if any(function.entries is not None for function in functions):
        return [function.entries or 0.0 for function in functions]
    if measured is None:
        return [1.0] * len(functions)
    return [float(measured.get(function.name, 0.0)) for function in functions]


def measured_calls(corpus: Corpus, unit: Module) -> Calls | None:
    """Return the calls of the functions of ``unit``, added up over the programs that hold it.

    :return: None if none of these programs was measured.
    :raises CorpusError: if the file of calls cannot be read.
    """
    path = corpus.root / CALLS
    try:
        stamp = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    by_program = _load(path, stamp)
    own = [p for p in corpus.programs if p.name in by_program and unit.name in p.modules]
    total: Counter[str] = Counter()
    for program in own:
        total.update(by_program[program.name])
    return total if own else None


@functools.lru_cache(maxsize=4)
def _load(path: Path, _stamp: int) -> Mapping[str, Mapping[str, int]]:
    try:
        content = json.loads(read_regular(path, "calls", limit=_LARGEST))
        return {
            str(program): {str(name): int(calls) for name, calls in functions.items()}
            for program, functions in content.items()
        }
    except (ReadError, ValueError, TypeError, AttributeError) as error:
        raise CorpusError(f"{path} holds no calls of functions ({error}): remove it.") from None
