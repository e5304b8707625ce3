"""The process in which kernels run: they may crash, hang or fill memory without harm.

Started by ``measure.py`` with two files: the request, and where to write the result.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.schedules.kernel.calling import Kernel, empty
from nestor.schedules.kernel.verify import fresh_inputs, verify
from nestor.schedules.payload.reading import parse_type
from nestor.schedules.payload.reference import Reference

REPEAT_SECONDS: Final = 2e-3
"""How long the calls of one repeat take together: many steps of the clock."""


def main(request_file: str, result_file: str) -> None:
    """Verify kernels, then time those that are right, and write what came out as JSON."""
    request = json.loads(Path(request_file).read_text())
    if request["core"] is not None:
        try:
            os.sched_setaffinity(0, [request["core"]])
        except OSError as error:
            core = request["core"]
            raise NestorError(f"The run cannot be pinned to core {core}: {error}") from None
    reference = Reference(request["generics"], request["function"])
    arguments, results = (
        [parse_type(text) for text in request[kind]] for kind in ("arguments", "results")
    )
    kernels = {
        name: Kernel(Path(path), request["function"], arguments, results)
        for name, path in request["kernels"].items()
    }
    verdicts = {}
    for name, kernel in kernels.items():
        verdict = verify(kernel, reference, request["seed"])
        verdicts[name] = {"correct": verdict.correct, "worst": _finite(verdict.worst),
                          "allowed": verdict.allowed, "reason": verdict.reason}  # fmt: skip
    inputs = fresh_inputs(arguments, request["seed"] + 1)
    calls: dict[str, Callable[[], Any]] = {}
    for name, kernel in kernels.items():
        if verdicts[name]["correct"]:
            calls[name] = kernel.prepared(inputs, [empty(kind) for kind in results])
    if request["numpy"]:
        calls["numpy"] = lambda: reference(*inputs, precise=False)
    seconds = interleaved(calls, request["rounds"]) if request["rounds"] else {}
    result = {"verdicts": verdicts, "seconds": seconds, "numpy": blas()}
    write_atomically(Path(result_file), json.dumps(result))


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of one call, by name and round.

    In each round all calls have their turn, in changing order, each as often as takes 2 ms.
    """
    counts = {name: _calibrated(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for number in range(rounds):
        for name in _rotated(names, number):
            call, count = calls[name], counts[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            seconds[name].append((time.perf_counter() - start) / count)
    return seconds


def _calibrated(call: Callable[[], Any]) -> int:
    """Return how many calls take the time of a repeat; the first calls warm the caches up."""
    call()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        if taken >= REPEAT_SECONDS:
            return count
        count = max(2 * count, min(100 * count, int(count * REPEAT_SECONDS / max(taken, 1e-7))))


def _rotated(names: Sequence[str], number: int) -> list[str]:
    start = number % max(1, len(names))
    return [*names[start:], *names[:start]]


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def blas() -> str:
    """Return which BLAS numpy uses, with the instruction set that it chose."""
    import ctypes

    import numpy as np

    words = [f"numpy {np.__version__}"]
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if "openblas" in path and ".so" in path:
            library = ctypes.CDLL(path)
            for symbol in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename",
                           "openblas_get_corename"):  # fmt: skip
                function = getattr(library, symbol, None)
                if function is not None:
                    function.restype = ctypes.c_char_p
                    words.append(f"OpenBLAS for {function().decode()}")
                    return ", ".join(words)
    return ", ".join(words)
