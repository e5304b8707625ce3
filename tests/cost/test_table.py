"""Tables are read back as they were written, and broken ones are refused in one sentence."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.cost.blocks import table
from nestor.cost.blocks.table import Table, TableError

NOP = "90"


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def full() -> Table:
    return Table(
        (b"\x90", b"\x89\xc8"),
        np.array([0.25, np.nan]),
        np.array([0.01, np.nan]),
        ("AMD Zen 5", ""),
        np.array([3.0, 1.0]),
        ("a.o", "b.o"),
        ("main", ""),
    )


def test_a_table_survives_the_disk(tmp_path: Path) -> None:
    before = full()
    table.write(before, tmp_path / "new" / "t.parquet")
    after = table.read(tmp_path / "new" / "t.parquet")
    assert (after.blocks, after.machine) == (before.blocks, before.machine)
    assert (after.source, after.function) == (before.source, before.function)
    assert after.frequency is not None
    for name in ("cycles", "spread", "frequency"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert pq.read_table(tmp_path / "new" / "t.parquet")["cycles"].null_count == 1
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["t.parquet"]


def test_labels_are_optional(tmp_path: Path) -> None:
    read = table.read(written(tmp_path / "t.parquet", block_hex=[NOP, NOP]))
    assert len(read) == 2
    assert np.isnan(read.cycles).all()
    assert not read.labelled.any()
    assert not read.stable.any()
    assert read.machine is None
    table.write(read, tmp_path / "again.parquet")
    assert table.read(tmp_path / "again.parquet").blocks == read.blocks
    assert len(table.unlabelled([b"\x90"])) == 1


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_and_numbers_may_be_of_any_width(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    columns = {
        "block_hex": pa.array(["90", "4801D8"]).cast(kind),
        "cycles": pa.array([1, 2], pa.int8()),
        "spread": pa.array([0.01, None], pa.float32()),
        "more": pa.array([{"a": 1}, None]),
    }
    pq.write_table(pa.table(columns), path)
    found = table.read(path)
    assert found.blocks == (b"\x90", bytes.fromhex("4801d8"))
    assert found.cycles.tolist() == [1, 2]
    assert found.stable.tolist() == [True, False]


def test_stable_needs_a_label_and_a_small_spread() -> None:
    t = Table((b"\x90",) * 4, np.array([1, 1, np.nan, 1]), np.array([0.049, 0.05, 0.0, np.nan]))
    assert t.stable.tolist() == [True, False, False, False]


def test_rows_are_selected_by_mask_and_by_index() -> None:
    t = full()
    assert t.select(np.array([False, True])).source == ("b.o",)
    turned = t.select(np.array([1, 0, 0]))
    assert turned.blocks == (t.blocks[1], t.blocks[0], t.blocks[0])
    assert turned.frequency is not None
    assert turned.frequency.tolist() == [1, 3, 3]
    assert turned.machine == ("", "AMD Zen 5", "AMD Zen 5")
    assert len(t.select(np.array([], dtype=np.int64))) == 0


def test_the_data_set_has_its_name_and_machine() -> None:
    zen5 = table.named("zen5")
    assert len(zen5) == 114_986
    assert len(set(zen5.blocks)) == len(zen5)
    assert zen5.labelled.all()
    assert 0.79 < zen5.stable.mean() < 0.80
    assert zen5.machine is not None
    assert set(zen5.machine) == {"AMD Zen 5"}


def test_a_name_that_is_no_file_lists_the_data_sets(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="nor one of the data sets zen4, zen4-sweep, zen5"):
        table.named(tmp_path / "absent.parquet")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"cycles": [1.0]}, "no column block_hex"),
        ({"block_hex": ["zz"]}, "no block of 1 to 65,536 bytes in hexadecimal in row 0"),
        ({"block_hex": [NOP, ""]}, "in row 1"),
        ({"block_hex": [NOP, None]}, "in row 1"),
        ({"block_hex": ["90" * 65537]}, "in row 0"),
        ({"block_hex": [[1]]}, "holds list<.*> instead of string"),
        ({"block_hex": [NOP], "cycles": ["fast"]}, "cycles .* holds string instead of double"),
        ({"block_hex": [NOP], "cycles": [-1.0]}, "-1 for cycles in row 0"),
        ({"block_hex": [NOP], "cycles": [0.0]}, "0 for cycles in row 0"),
        ({"block_hex": [NOP, NOP], "spread": [0.0, float("inf")]}, "inf for spread in row 1"),
        ({"block_hex": [NOP], "machine": [[1]]}, "The column machine"),
    ],
)
def test_broken_tables_are_refused(tmp_path: Path, columns: dict[str, object], said: str) -> None:
    with pytest.raises(TableError, match=said):
        table.read(written(tmp_path / "t.parquet", **columns))


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="cannot be written"):
        table.write(full(), tmp_path / "file" / "t.parquet")


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 400), st.booleans())
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes, place: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "t.parquet"
    table.write(full(), path)
    content = path.read_bytes()
    place = min(place, len(content))
    path.write_bytes(content[:place] + damage + (b"" if cut else content[place + len(damage) :]))
    try:
        read = table.read(path)
    except TableError:
        return
    assert len(read.cycles) == len(read.blocks)
