"""Measurements that are kept, so that the same build of a program is not measured again.

A measurement is kept under a digest of all that it depends on: the content of the binary, the
arguments, the inputs, valgrind's version, the library of fixed times, the processor, by which
libraries choose their code, and the libraries (``libraries``). So a command that was interrupted
goes on where it was, and policies that make the same program share its measurement.
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import INPUTS_DATE
from nestor.files import sha256_of, write_atomically
from nestor.processor import this_machine
from nestor.workload.callgrind import measure
from nestor.workload.counts import Measurement
from nestor.workload.fixed_time import source
from nestor.workload.libraries import loaded_by


@dataclass(frozen=True)
class Repeated:
    """A measurement, and how far a second one of the same binary was from it."""

    first: Measurement
    second_total: int | None = None
    """J of the second one; None if there was only one."""
    second_left: str | None = None
    """What the second run left."""

    @property
    def noise_pct(self) -> float | None:
        """Difference of the two J in per cent: 0 for a program that does the same each time."""
        if self.second_total is None:
            return None
        total = self.first.counts.total
        return 100.0 * abs(self.second_total - total) / total

    @property
    def same_output(self) -> bool:
        """Whether both runs left the same, so that another output would mean something."""
        return self.second_left in (None, self.first.left)


def measure_kept(
    corpus: Corpus,
    program: Program,
    binary: Path,
    words: Sequence[str],
    toolchain: Toolchain,
    folder: Path,
    *,
    twice: bool = False,
) -> Repeated:
    """Return the measurement in ``folder``, or measure ``binary`` and keep the result there.

    :param twice: measure a second time, to learn whether the program does the same each time.
    :raises MeasureError: if it cannot be measured.
    """
    path = folder / f"{run_digest(corpus, program, binary, words)}.json"
    kept = _read(path)
    if kept is not None and (kept.second_total is not None or not twice):
        return kept
    first = kept.first if kept is not None else measure(corpus, program, binary, words, toolchain)
    result = Repeated(first)
    if twice:
        second = measure(corpus, program, binary, words, toolchain)
        result = Repeated(first, second.counts.total, second.left)
    data: dict[str, Any] = {
        "program": program.name,
        "first": result.first.to_json(),
        "second_total": result.second_total,
        "second_left": result.second_left,
    }
    write_atomically(path, json.dumps(data).encode())
    return result


def run_digest(corpus: Corpus, program: Program, binary: Path, words: Sequence[str]) -> str:
    """Return 64 hex digits that change with all that a run of a program depends on."""
    inputs = corpus.project(program.project).inputs
    depends = [
        program.name, sha256_of(binary), list(words), list(inputs), INPUTS_DATE, _version(),
        sha256_of(source()), this_machine(), loaded_by(binary),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(depends).encode()).hexdigest()


@functools.cache
def _version() -> str:
    try:
        return run_tool(["valgrind", "--version"]).stdout.strip()
    except OSError:
        return ""  # measuring says what is missing


def _read(path: Path) -> Repeated | None:
    try:
        data = json.loads(path.read_bytes())
        return Repeated(
            Measurement.from_json(data["first"]), data["second_total"], data["second_left"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, or cut short by a full disk: it is measured again
