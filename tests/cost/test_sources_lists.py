"""Lists of blocks, licences, and rows of bitcode in ComPile's form."""

import hashlib
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.compiler.toolchain import Toolchain
from nestor.cost.sources import bhive, compile_parquet
from nestor.cost.sources.bhive import ListError
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.compile_parquet import BitcodeFileError
from nestor.cost.sources.licences import accepts
from nestor.cost.sources.settings import Columns, CompileSettings, Filter

ONE_JOB = CompileSettings(jobs=1)


def listed(folder: Path, text: str, columns: Columns | None = None) -> Collection:
    (folder / "list.csv").write_text(text)
    into = Collection()
    bhive.read(folder / "list.csv", columns or Columns(), into)
    return into


def test_a_list_of_bhive_gives_blocks_with_labels(tmp_path: Path) -> None:
    found = listed(tmp_path, "4801c8,125.0\n31c0,50\n4801c8,130\n", Columns(cycles_column=1))
    table = found.table()
    assert table.blocks == (bytes.fromhex("4801c8"), bytes.fromhex("31c0"))
    assert table.cycles.tolist() == [1.25, 0.5]  # the first label stays
    assert np.isnan(table.spread).all()
    assert table.frequency is not None
    assert table.frequency.tolist() == [2, 1]
    assert table.source == (str(tmp_path / "list.csv"),) * 2


def test_a_list_without_labels_or_with_counts(tmp_path: Path) -> None:
    assert not listed(tmp_path, "31c0\n\nffc0,7\n").table().labelled.any()
    frequency = listed(tmp_path, "31c0,4\n31c0,5\n", Columns(frequency_column=1)).table().frequency
    assert frequency is not None
    assert frequency.tolist() == [9]


def test_headings_say_what_the_columns_are(tmp_path: Path) -> None:
    table = listed(tmp_path, "name,hex,cycles,spread,frequency\na,31c0,0.5,0.01,3\n").table()
    assert (table.cycles.tolist(), table.spread.tolist()) == ([0.5], [0.01])
    assert table.frequency is not None
    assert table.frequency.tolist() == [3]
    assert table.stable.all()


def test_rows_that_are_no_code_are_counted(tmp_path: Path) -> None:
    found = listed(tmp_path, '31c0\n06\nzz\n""\n0f\n')
    assert (len(found), found.undecodable, found.empty) == (1, 3, 1)


@pytest.mark.parametrize("cell", ["fast", "-1", "inf"])
def test_labels_that_are_no_numbers_are_refused_with_their_line(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ListError, match=r"line 2 has .* in column 1"):
        listed(tmp_path, f"31c0,1\nffc0,{cell}\n", Columns(cycles_column=1))


def test_a_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ListError, match="cannot be read as a list"):
        bhive.read(tmp_path / "list.csv", Columns(), Collection())


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True),
        ("mit", True),
        ("GPL-2.0-only", False),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-2.0-only AND MIT", False),
        ("MIT AND Apache-2.0", True),
        ("(MIT OR GPL-3.0) AND Apache-2.0", True),
        ("MIT OR GPL-3.0 AND GPL-2.0", True),  # AND binds more tightly
        ("(MIT OR GPL-3.0) AND GPL-2.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0 WITH Classpath-exception-2.0", True),
        ("GPL-2.0 WITH other", False),
        ("", False),
        (None, False),
        ("MIT OR", False),
        ("MIT Apache-2.0", False),
        ("(MIT", False),
        ("MIT)", False),
        ("OR MIT", False),
        ("MIT WITH", False),
        ("(" * 5_000 + "MIT" + ")" * 5_000, False),
    ],
)
def test_licences(expression: str | None, met: bool) -> None:
    accepted = ("MIT", "Apache-2.0", "GPL-2.0 WITH Classpath-exception-2.0")
    assert accepts(expression, accepted) is met


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["MIT", "GPL", "AND", "OR", "WITH", "(", ")"]), max_size=9))
def test_no_expression_is_met_by_nothing_and_crashes(words: list[str]) -> None:
    text = " ".join(words)
    assert not accepts(text, ())
    assert accepts(text, ("MIT",)) <= accepts(text, ("MIT", "GPL"))


def bitcode(folder: Path, toolchain: Toolchain, text: str) -> bytes:
    (folder / "m.c").write_text(text)
    command = [str(toolchain.clang), "-Oz", "-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"]
    subprocess.run([*command, "m.c", "-o", "m.bc"], cwd=folder, check=True)
    return (folder / "m.bc").read_bytes()


@pytest.fixture
def dataset(tmp_path: Path, toolchain: Toolchain) -> Path:
    """A file in ComPile's schema: two row groups, one row of which is broken."""
    add = bitcode(tmp_path, toolchain, "int f(int a) { return a / 3 + 1; }")
    multiply = bitcode(tmp_path, toolchain, "long g(long a) { return a * a * 5; }")
    path = tmp_path / "compile.parquet"
    schema = pa.schema(
        [
            ("content", pa.binary()),
            ("license_expression", pa.string()),
            ("license_source", pa.string()),
            ("license_files", pa.list_(pa.string())),
            ("package_source", pa.string()),
            ("language", pa.string()),
        ]
    )
    rows = pa.table(
        [
            [add, multiply, b"BC\xc0\xdebroken", add],
            ["MIT", "GPL-3.0-only", "MIT OR Apache-2.0", None],
            ["spack", "spack", "spack", None],
            [["LICENSE"], [], [], None],
            ["one", "two", "three", None],
            ["c", "c++", "c", "rust"],
        ],
        schema=schema,
    )
    pq.write_table(rows, path, row_group_size=2)
    return path


def read(path: Path, wanted: Filter, toolchain: Toolchain, s: CompileSettings) -> Collection:
    into = Collection()
    compile_parquet.read(path, wanted, toolchain, s, into)
    return into


def test_compiles_rows_become_blocks(dataset: Path, toolchain: Toolchain) -> None:
    found = read(dataset, Filter(), toolchain, ONE_JOB)
    assert (found.files, found.functions, found.mapped, found.filtered) == (3, 3, 3, 0)
    assert sum(found.failures.values()) == 1
    assert "bitcode" in next(iter(found.failures))
    table = found.table()
    digest = hashlib.sha256(pq.read_table(dataset)["content"][0].as_py()).hexdigest()
    assert table.source is not None
    assert table.source[0] == f"one#{digest[:12]}"
    assert set(table.function or ()) == {"f", "g"}
    assert table.frequency is not None
    assert table.frequency.tolist() == [2, 1]  # the first module is there twice


def test_licences_and_languages_are_filtered(dataset: Path, toolchain: Toolchain) -> None:
    permissive = read(dataset, Filter(licences=("MIT",)), toolchain, ONE_JOB)
    assert (permissive.files, permissive.filtered) == (1, 2)
    assert sum(permissive.failures.values()) == 1
    c_plus_plus = read(dataset, Filter(languages=("C++",)), toolchain, ONE_JOB)
    assert (c_plus_plus.files, c_plus_plus.filtered) == (1, 3)
    assert set(c_plus_plus.table().function or ()) == {"g"}
    neither = read(dataset, Filter(("MIT",), ("rust",)), toolchain, ONE_JOB)
    assert (len(neither), neither.filtered) == (0, 4)


def test_objects_that_are_kept_are_not_made_again(
    dataset: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    kept = tmp_path / "objects"
    first = read(dataset, Filter(), toolchain, CompileSettings(jobs=2, objects=kept))
    files = {file: file.stat().st_mtime_ns for file in kept.iterdir()}
    assert len(files) == 2  # equal bitcode is one object, and what failed left nothing
    again = read(dataset, Filter(), toolchain, CompileSettings(jobs=2, objects=kept))
    assert {file: file.stat().st_mtime_ns for file in kept.iterdir()} == files
    assert again.table().blocks == first.table().blocks


def test_files_that_are_not_compiles_are_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1nothing")
    with pytest.raises(BitcodeFileError, match="cannot be read as parquet"):
        read(path, Filter(), toolchain, ONE_JOB)
    pq.write_table(pa.table({"block_hex": ["90"]}), path)
    with pytest.raises(BitcodeFileError, match="has no column content"):
        read(path, Filter(), toolchain, ONE_JOB)
    pq.write_table(pa.table({"content": [b""]}), path)
    assert sum(read(path, Filter(), toolchain, ONE_JOB).failures.values()) == 1
    with pytest.raises(BitcodeFileError, match="has no column language"):
        read(path, Filter(languages=("c",)), toolchain, ONE_JOB)
