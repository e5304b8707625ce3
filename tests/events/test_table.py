"""The table of events on disk: what comes back, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.events.errors import EventsError
from nestor.events.executed import Executed, LoadedObject, table_of
from nestor.events.summary import by_function, totals
from nestor.events.table import EVENTS, About, EventTable, edges_path, read, write

ABOUT = About("simulated", 1, "program", "0" * 64)
# A loop of two blocks in "f" and a return in "g":
#   1000: nop; jne 1000 | 1003: nop | 1004: ret
CODE = (b"\x90", b"\x75\xfd", b"\x90", b"\xc3")
ADDRESS = (0x5000, 0x5001, 0x5003, 0x5004)
KIND = (0, 1, 0, 4)
EXECUTIONS = (10, 10, 1, 1)


def example() -> EventTable:
    taken = np.array([0, 9, 0, 1])
    run = Executed(
        np.array(ADDRESS, np.uint64),
        CODE,
        np.array(KIND),
        np.array(EXECUTIONS),
        {"taken": taken, "mispredicts": np.array([0, 2, 0, 0])},
        np.array([0x5004], np.uint64),
        np.array([0x5000], np.uint64),
        np.array([1]),
        [LoadedObject("/bin/program", 0x5000, 0x100, 0x4000)],
        np.array([0x5000, 0x5003], np.uint64),
        ("f", "g"),
    )
    return table_of(run, ABOUT)


def test_instructions_become_blocks_and_edges() -> None:
    table = example()
    rows = table.blocks.to_pylist()
    assert [(r["address"], r["function"], r["exit"], r["executions"]) for r in rows] == [
        (0x1000, "f", "conditional", 10),
        (0x1003, "g", "return", 1),
    ]
    assert [(r["code"], r["instructions"], r["taken"], r["mispredicts"]) for r in rows] == [
        (b"\x90\x75\xfd", 2, 9, 2),
        (b"\x90\xc3", 2, 1, 0),
    ]
    edges = {(e["from_address"], e["to_address"]): e["count"] for e in table.edges.to_pylist()}
    assert edges == {(0x1000, 0x1000): 9, (0x1000, 0x1003): 1, (0x1003, 0x1000): 1}
    assert not table.has("l1_misses")
    assert totals(table)["l1_misses"] is None
    assert table.instructions == 22
    assert [(f.function, f.instructions, f.events["mispredicts"]) for f in by_function(table)] == [
        ("f", 20, 2),
        ("g", 2, 0),
    ]


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    table = example()
    write(table, tmp_path / "run.parquet")
    again = read(tmp_path / "run.parquet")
    assert again.about == table.about
    assert again.blocks.equals(table.blocks)
    assert again.edges.equals(table.edges)


def test_a_run_of_nothing(tmp_path: Path) -> None:
    nothing = np.array([], np.int64)
    none = nothing.astype(np.uint64)
    run = Executed(none, (), nothing, nothing, {}, none, none, nothing, (), none, ())
    write(table_of(run, ABOUT), tmp_path / "run.parquet")
    assert len(read(tmp_path / "run.parquet")) == 0


def _column(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    kind = table.schema.field(name).type
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, kind))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.drop_columns(["executions"]), "no table of events"),
        (lambda t: t.replace_schema_metadata({}), "no table of events"),
        (lambda t: _column(t, "executions", [-1, 1]), "impossible counts"),
        (lambda t: _column(t, "executions", [None, 1]), "empty cells"),
        (lambda t: _column(t, "mispredicts", [None, 1]), "empty cells"),
        (lambda t: _column(t, "exit", ["sideways", "return"]), "no such way"),
        (lambda t: t.replace_schema_metadata({b"nestor.events": b'{"format": 1}'}), "another run"),
        (lambda t: t.replace_schema_metadata({b"nestor.events": b"[" * 100_000}), "cannot be read"),
    ],
)
def test_a_table_that_was_changed_is_refused(
    change: Callable[[pa.Table], pa.Table], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.parquet"
    write(example(), path)
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(EventsError, match=reason) as error:
        read(path)
    assert str(error.value).count("\n") == 0


def test_edges_of_another_run_are_refused(tmp_path: Path) -> None:
    write(example(), tmp_path / "a.parquet")
    other = replace(example(), about=replace(ABOUT, program="other"))
    write(other, tmp_path / "b.parquet")
    edges_path(tmp_path / "b.parquet").rename(edges_path(tmp_path / "a.parquet"))
    with pytest.raises(EventsError, match="another run"):
        read(tmp_path / "a.parquet")


def test_edges_that_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    write(example(), path)
    edges_path(path).unlink()
    with pytest.raises(EventsError, match=r"' lacks its edges, '.*'; keep both files together\.$"):
        read(path)
    path.unlink()
    with pytest.raises(EventsError, match=r"No such file or directory; 'nestor events' makes them"):
        read(path)


def test_names_and_places(tmp_path: Path) -> None:
    with pytest.raises(EventsError, match=r"\.parquet"):
        write(example(), tmp_path / "run.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(EventsError, match="cannot be written"):
        write(example(), tmp_path / "file" / "run.parquet")
    with pytest.raises(EventsError, match="cannot be read"):
        read(tmp_path / "absent.parquet")


@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "run.parquet"
    write(example(), path)
    content = bytearray(path.read_bytes())
    end = data.draw(st.integers(0, len(content)))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[:end] if data.draw(st.booleans()) else content)
    try:
        table = read(path)
    except EventsError as error:
        assert "\n" not in str(error)
    else:
        assert all((table.total(name) or 0) >= 0 for name in EVENTS)
