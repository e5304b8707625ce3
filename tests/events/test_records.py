"""The file that the tool writes, damaged in every way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.events.errors import EventsError
from nestor.events.simulated.records import _EDGE, _HEADER, _OBJECT, _RUN, _SITE, parse

NAMES = b"/bin/program\0main\0"


def content() -> bytes:
    """Return the file of three instructions that ran five times, twice from the second on."""
    header = np.zeros(1, _HEADER)
    header["magic"], header["version"] = b"NESTOREV", 1
    header["sites"], header["runs"], header["edges"], header["objects"] = 3, 2, 1, 1
    header["name_bytes"] = len(NAMES)
    objects = np.array([(0x1000, 0x100, 0, 0)], _OBJECT)
    sites = np.zeros(3, _SITE)
    sites["address"], sites["length"] = [0x1002, 0x1000, 0x1001], 1
    sites["kind"] = [4, 0, 0]
    sites["code"][:, 0] = [0xC3, 0x90, 0x90]
    sites["mispredicts"][0] = 3
    runs = np.array([(0x1000, 3, 3, 13), (0x1001, 2, 2, 13)], _RUN)
    edges = np.array([(0x1002, 0x1000, 5)], _EDGE)
    parts = (header, objects, sites, runs, edges)
    return b"".join(part.tobytes() for part in parts) + NAMES + b"complete"


def test_what_the_tool_writes() -> None:
    run = parse(content())
    assert run.address.tolist() == [0x1000, 0x1001, 0x1002]
    assert run.executions.tolist() == [3, 5, 5]
    assert run.code == [b"\x90", b"\x90", b"\xc3"]
    assert run.events["mispredicts"].tolist() == [0, 0, 3]
    assert run.objects[0].name == "/bin/program"
    assert list(run.function_name) == ["main", "main"]


@pytest.mark.parametrize("end", [0, 8, 71, 72, 200, -1])
def test_a_file_that_was_cut_short_is_refused(end: int) -> None:
    with pytest.raises(EventsError, match="cut short"):
        parse(content()[:end])


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_file_is_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(content())
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse(bytes(damaged))
    except EventsError as error:
        assert "\n" not in str(error)
