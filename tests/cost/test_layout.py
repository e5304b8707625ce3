"""Python and C++ agree on what they exchange; a disagreement is found when the library loads."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.cost.core import simulator
from nestor.cost.core.parameters import FORM
from nestor.cost.core.simulator import cost_library
from nestor.cost.isa import template_layout
from nestor.cost.isa.template_layout import TEMPLATE, Place
from nestor.cost.model import session
from nestor.cost.native.host_compiler import host_compiler
from nestor.cost.native.layout import Layout, LayoutError, check_layout
from nestor.cost.native.library import source_folder

LAYOUTS = (template_layout.LAYOUT, simulator.LAYOUT, session.LAYOUT)


@pytest.mark.parametrize("part", ["records", "codes", "names"])
def test_all_that_the_library_exports_is_compared(part: str) -> None:
    library = cost_library()
    for layout in LAYOUTS:
        check_layout(library, layout)
    exported = json.loads(library.nestor_cost_layout())
    compared = {name for layout in LAYOUTS for name in getattr(layout, part)}
    assert set(exported[part]) == compared


def test_a_record_of_python_that_differs_is_refused_by_name() -> None:
    fields: list[tuple[str, type]] = [(name, np.int32) for name in FORM.names or ()]
    refused: dict[str, list[tuple[str, type]]] = {
        "latency": [fields[1], fields[0], *fields[2:]],
        "load_extra": fields[:-1],
        "slots": [("slots", np.int64), *fields[1:]],
        "surplus": [*fields, ("surplus", np.int32)],
    }
    check_layout(cost_library(), Layout(records={"FormParameters": np.dtype(fields)}))
    for name, wrong in refused.items():
        with pytest.raises(LayoutError, match=f"record FormParameters: '{name}'"):
            check_layout(cost_library(), Layout(records={"FormParameters": np.dtype(wrong)}))


def test_a_number_or_a_list_of_python_that_differs_is_refused_by_name() -> None:
    moved = {name: int(value) for name, value in Place.__members__.items()} | {"FIXED": 7}
    with pytest.raises(LayoutError, match="numbers of Place: 'FIXED' is 7 in Python and 6 in C"):
        check_layout(cost_library(), Layout(codes={"Place": moved}))
    names = list(session.LAYOUT.names["plain features"])
    names[1], names[2] = names[2], names[1]
    with pytest.raises(LayoutError, match="list of plain features: '1'"):
        check_layout(cost_library(), Layout(names={"plain features": names}))


SURPLUS = ("Decode.h", "int32_t width; ", "int32_t width, surplus; ")
"""A field that Layout.cpp does not list."""
RENAMED = ("Decode.h", "int32_t width; ", "int32_t breadth; ")
SWAPPED_FIELDS = (
    "Simulate.h",
    "int32_t dispatchWidth, retireWidth,",
    "int32_t retireWidth, dispatchWidth,",
)
SWAPPED_NUMBERS = ("Codes.h", "X(Fixed, 6) X(InMemory, 7)", "X(Fixed, 7) X(InMemory, 6)")
MISSING_NUMBER = ("Codes.h", "X(Reads, 1) X(Writes, 2)", "X(Reads, 1)")
SWAPPED_FEATURES = (
    "Features.cpp",
    'X("chain", chain) X("front end", front)',
    'X("front end", front) X("chain", chain)',
)


def exporter_of(change: tuple[str, str, str], folder: Path) -> Path | None:
    """Return a library that exports the layout of changed sources; None if they do not compile.

    Of the library two files say what it exchanges; what they call stays unresolved.
    """
    file, old, new = change
    shutil.copytree(source_folder("cost"), folder / "cost")
    text = (folder / "cost" / file).read_text()
    assert text.count(old) == 1
    (folder / "cost" / file).write_text(text.replace(old, new))
    out = folder / "changed.so"
    sources = [str(folder / "cost" / name) for name in ("Layout.cpp", "Features.cpp")]
    command = [host_compiler("c++"), "-std=c++17", "-fPIC", "-shared", *sources, "-o", str(out)]
    built = subprocess.run(command, capture_output=True, check=False)
    return out if built.returncode == 0 else None


@pytest.mark.parametrize("change", [SURPLUS, RENAMED])
def test_a_field_that_is_not_exported_does_not_compile(
    change: tuple[str, str, str], tmp_path: Path
) -> None:
    assert exporter_of(change, tmp_path) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SWAPPED_FIELDS, "record MachineParameters: 'dispatch_width'"),
        (SWAPPED_NUMBERS, "numbers of Place: 'FIXED'"),
        (MISSING_NUMBER, "numbers of Access: 'WRITES'"),
        (SWAPPED_FEATURES, "list of plain features: '1'"),
    ],
)
def test_a_change_of_the_library_alone_is_refused(
    change: tuple[str, str, str], message: str, tmp_path: Path
) -> None:
    path = exporter_of(change, tmp_path)
    assert path is not None
    library = ctypes.CDLL(str(path))
    with pytest.raises(LayoutError, match=message):
        for layout in LAYOUTS:
            check_layout(library, layout)


def test_a_template_has_no_padding() -> None:
    assert TEMPLATE.itemsize == 4 * template_layout.WORDS == 192
