"""A payload as a Python function on numpy arrays."""

import re
from collections.abc import Mapping
from pathlib import Path

from nestor.schedules.kernel.building import build_library
from nestor.schedules.kernel.calling import Kernel
from nestor.schedules.kernel.evaluate import Task
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.measure import RunError, Settings, measure
from nestor.schedules.language.library import Library, packaged
from nestor.schedules.language.linking import ENTRY, Linked, check_names, decisions_of, link
from nestor.schedules.language.text import Place, ScheduleError, blanked, line_of
from nestor.schedules.payload.loops import suggest
from nestor.schedules.payload.reading import Payload, read_payload
from nestor.schedules.target import Target, find_own_target
from nestor.schedules.tools import Tools, find_tools
from nestor.schedules.tune.tuning import first_choice
from nestor.temporary import temporary_folder


def compile(  # noqa: A001  # nestor.schedules.compile
    payload: Path | str,
    schedule: Path | str | None = None,
    *,
    choice: Mapping[str, int] | None = None,
    library: Library | None = None,
    target: str = "host",
    function: str | None = None,
    verify: bool = True,
    llvm: str | None = None,
) -> Kernel:
    """Compile a payload to a function on numpy arrays.

    :param payload: a file, or MLIR text.
    :param schedule: the name of a schedule of the library, or the path of a resolved schedule, as
        ``nestor schedule tune`` writes it; None: the packaged one for such a payload.
    :param choice: answers to decisions; the packaged policy picks the others.
    :param library: schedules; None: the packaged ones.
    :param target: the instruction set: ``host``, ``avx512``, ``avx2`` or ``sse2``.
    :param function: which function, if the payload has several.
    :param verify: compare with numpy on fresh inputs first, in a process of its own.
    :param llvm: a prefix or a clang; None: the LLVM of this machine.
    :raises LoweringError: if the payload cannot be lowered.
    :raises ScheduleError: if there is no such schedule or decision.
    :raises RunError: if the kernel crashes, hangs or computes something else.
    """
    if isinstance(payload, str) and payload.endswith(".mlir"):
        raise ScheduleError(f"A text is read as MLIR; a file is named by Path({payload!r}).")
    tools = find_tools(llvm)
    machine = find_own_target(target)
    read = read_payload(payload, tools, function=function)
    if isinstance(schedule, Path):
        linked = read_resolved(schedule)
    else:
        sequences = library or packaged()
        name = schedule or suggest(read)
        check_names(choice or {}, name, decisions_of(sequences, name))
        task = Task(read, sequences, name, machine, tools, fixed=dict(choice or {}))
        linked = link(sequences, name, first_choice(task))
    return compile_linked(read, linked, machine, tools, verify=verify)


def compile_linked(
    payload: Payload, linked: Linked, target: Target, tools: Tools, *, verify: bool = True
) -> Kernel:
    """Compile a payload by a schedule without open decisions; otherwise like :func:`compile`."""
    lowered = lower(payload, linked, tools)
    with temporary_folder("kernel") as name:
        file = Path(name) / "kernel.so"
        build_library(lowered, target, tools, file)
        if verify:
            measured = measure({"kernel": file}, payload, tools, Settings(rounds=0, numpy=False))
            verdict = measured.verdicts["kernel"]
            if not verdict["correct"]:
                raise RunError(f"The kernel of '{payload.name}' is wrong: {verdict['reason']}.")
        # The loaded library outlives its file.
        return Kernel(file, payload.name, payload.arguments, payload.results)


def read_resolved(path: Path) -> Linked:
    """Read a schedule that was written with all decisions taken.

    :raises ReadError: if the file cannot be read.
    :raises ScheduleError: if it is no such schedule.
    """
    from nestor.files import read_regular_text

    text = read_regular_text(path, "a resolved schedule")
    code = blanked(text)
    if f"@{ENTRY}" not in code:
        raise ScheduleError(
            f"{path} is no resolved schedule: it has no sequence @{ENTRY}. 'nestor schedule tune'"
            " and 'nestor schedule apply --resolved' write one."
        )
    if (at := code.find("transform.tune.")) >= 0:
        raise ScheduleError(
            f"{path}:{line_of(text, at)}: this decision is open: 'nestor schedule run --library"
            f" {path}' decides it."
        )
    return Linked(text, ((1, Place(path, 1)),))


def tuned_for(schedule: Linked) -> str | None:
    """Return the digest of the payload that a resolved schedule was tuned for, if it says so."""
    found = re.search(r"^// payload \S+ ([0-9a-f]{64})$", schedule.text, re.MULTILINE)
    return found[1] if found else None
