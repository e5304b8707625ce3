"""Kernels of payloads under what is computed without measurements."""

from pathlib import Path

from nestor.schedules.kernel.building import build_library
from nestor.schedules.kernel.calling import Kernel
from nestor.schedules.kernel.guess import guess
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.language.library import packaged
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.payload.loops import loops_of, suggest
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target
from nestor.schedules.tools import Tools


def compile_text(text: str, tools: Tools, folder: Path, target: str = "host") -> Kernel:
    payload = read_payload(text, tools)
    library = packaged()
    name = suggest(payload)
    machine = find_target(target)
    choice = guess(decisions_of(library, name), loops_of(payload), machine)
    lowered = lower(payload, link(library, name, choice), tools)
    out = folder / "kernel.so"
    build_library(lowered, machine, tools, out)
    return Kernel(out, payload.name, payload.arguments, payload.results)
