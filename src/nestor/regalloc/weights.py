"""How often each function of a module is called: what its cost per call is multiplied by.

In this order: the entries of a profile that the module carries; the calls that were measured on the
profile runs of the programs that hold the module (:mod:`nestor.workload.calls`); one call of each
function where neither is there.
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from nestor.corpus.model import Corpus, Module
from nestor.regalloc.allocation_log import FunctionAllocation
from nestor.workload.calls import CALLS, CallsByProgram, read_calls

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
    try:
        stamp = (corpus.root / CALLS).stat().st_mtime_ns
    except FileNotFoundError:
        return None
    by_program = _load(corpus.root, stamp)
    own = [p for p in corpus.programs if p.name in by_program and unit.name in p.modules]
    total: Counter[str] = Counter()
    for program in own:
        total.update(by_program[program.name])
    return total if own else None


@functools.lru_cache(maxsize=4)
def _load(root: Path, _stamp: int) -> CallsByProgram:
    return read_calls(root)
