"""What mispredicted branches and misses cost on a machine, measured and kept as a small file."""

import math
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Final

from nestor.errors import NestorError
from nestor.processor import this_machine
from nestor.program_cost.documents import load_document, save_document
from nestor.program_cost.machine import MachineError, measured_lines

_FORMAT: Final = 1
_LARGEST: Final = 1 << 16
_MOST_CYCLES: Final = 1e5


class PenaltiesError(NestorError):
    """Penalties that cannot be read or found; the text says what to do."""


@dataclass(frozen=True)
class Penalties:
    """Core cycles; each cost is that of one that nothing hides."""

    machine: str
    """The processor."""
    mispredict: float
    """Of a mispredicted branch."""
    taken_branch: float
    """Of a jump, in a row of jumps."""
    call_return: float
    """Of a call, a jump and the return."""
    store_forward: float
    """From a store to a load of the same place."""
    store_forward_indexed: float
    """The same where the address has an index."""
    l1: float
    """Of a load that the first-level cache answers, in a chain of loads."""
    l2: float
    llc: float
    """The last level."""
    memory: float
    page_walk: float
    """What a load in small pages takes longer than in huge ones; 0 where there are none."""


_NAMES: Final = tuple(field.name for field in fields(Penalties) if field.name != "machine")


def measure(core: int | None = None) -> Penalties:
    """Return the penalties of this machine (about three seconds).

    :param core: the processor to run on; None: the last one that this process may use.
    :raises MachineError: if they cannot be measured.
    """
    lines = measured_lines(["penalties"], core=core)
    found = {words[0]: float(words[1]) for words in lines if len(words) == 2}
    try:
        return Penalties(this_machine(), **found)
    except TypeError as error:
        raise MachineError(f"The microbenchmarks said something else ({error}).") from None


def save(penalties: Penalties, path: Path) -> None:
    """Write the file of a machine.

    :raises PenaltiesError: if it cannot be written; a file that was there stays as it was.
    """
    save_document(asdict(penalties), _FORMAT, path, PenaltiesError)


def load(path: Path) -> Penalties:
    """Return the penalties in a file.

    :raises PenaltiesError: if it is of another kind.
    """
    return load_document(
        path, "penalties of a machine", _FORMAT, _LARGEST, _read, PenaltiesError,
        "nestor costmodel penalties",
    )  # fmt: skip


def _read(found: Any) -> Penalties:
    if not isinstance(found["machine"], str) or not found["machine"].isprintable():
        raise ValueError("it is of another version")
    if any(isinstance(found[name], bool) for name in _NAMES):
        raise ValueError("a penalty is no number")
    cycles = {name: float(found[name]) for name in _NAMES}
    if not all(math.isfinite(c) and 0 <= c < _MOST_CYCLES for c in cycles.values()):
        raise ValueError("a number is out of range")
    return Penalties(found["machine"], **cycles)


def packaged() -> dict[str, Path]:
    """Return the files that come with Nestor, by machine."""
    folder = Path(str(resources.files("nestor"))) / "program_cost" / "data" / "penalties"
    return {load(path).machine: path for path in sorted(folder.glob("*.json"))}


def named(name_or_path: str | None) -> Penalties:
    """Return the penalties in a file or of a machine by its name; None means this machine.

    :raises PenaltiesError: if there are none.
    """
    wanted = this_machine() if name_or_path is None else name_or_path
    files_of = packaged()
    if wanted in files_of:
        return load(files_of[wanted])
    if name_or_path is not None and Path(name_or_path).is_file():
        return load(Path(name_or_path))
    raise PenaltiesError(
        f"There are no penalties of '{wanted}', only of {', '.join(files_of)}; measure them by"
        " 'nestor costmodel penalties --out FILE' and name the file with --penalties."
    )
