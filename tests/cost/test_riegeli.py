"""Riegeli files: published hashes and headers, every compression, damage."""

import contextlib
import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.cost.trace import riegeli
from nestor.cost.trace.highwayhash import highwayhash64
from nestor.cost.trace.riegeli import RiegeliError, read_records, write_records

SIGNATURE = bytes.fromhex(
    "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"
    "0000000000000000e19f13c0e9b1c37273000000000000000000000000000000"
)
"""The first 64 bytes of every file, as the specification of the format prints them."""


def test_hashes_are_those_that_google_publishes() -> None:
    key = struct.unpack("<4Q", bytes(range(32)))
    # highwayhash_test.cc, kExpected64, by the number of bytes.
    expected = {
        0: 0x907A56DE22C26E53, 1: 0x7EAB43AAC7CDDD78, 2: 0xB8D0569AB0B53D62,
        3: 0x5C6BEFAB8A463D80, 7: 0x4D02AE1738F59482, 15: 0x40793F86A449F33B,
        16: 0xCFAB3489F97EB832, 17: 0x19FE67D2C8C5C0E2, 18: 0x04DD90A69C565CC2,
        31: 0x9FC7007CCF035A68, 32: 0xA0C964D9ECD580FC, 33: 0x2C90F73CA03181FC,
    }  # fmt: skip
    assert {n: highwayhash64(bytes(range(n)), key) for n in expected} == expected


@pytest.mark.parametrize(
    "header",
    [  # of a file that Google's own writer made: headers of blocks, then of chunks
        "e3ac37518570b602c0ff000000000000232c010000000000",
        "73ccb67f5d9cc883c0ff010000000000232c000000000000",
        "9e5c01fcc92bbcb58b2b0200000000001d8fb7a808e066807202000000000000ab260b0000000000",
        "75d78dd2fb99847cb6c2070000000000439cb3f2d7c02b9f72010000000000009764190000000000",
    ],
)
def test_headers_of_another_writer_have_our_hashes(header: str) -> None:
    content = bytes.fromhex(header)
    assert riegeli._hash(content[8:]) == int.from_bytes(content[:8], "little")


@settings(max_examples=20)
@given(sizes=st.lists(st.sampled_from([0, 1, 7, 300, 65_464, 65_512, 65_536, 140_000]), max_size=5))
def test_records_come_back(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    path = tmp_path_factory.mktemp("riegeli") / "records"
    # Random bytes do not shrink, so chunks cross the headers of blocks.
    chance = random.Random(len(sizes))
    records = [chance.randbytes(size) for size in sizes]
    write_records(path, records)
    assert path.read_bytes()[:64] == SIGNATURE
    assert list(read_records(path)) == records


def test_more_records_than_bytes_come_back(tmp_path: Path) -> None:
    write_records(tmp_path / "records", [b""] * 100_000)
    assert sum(1 for _ in read_records(tmp_path / "records")) == 100_000


@pytest.mark.parametrize(("name", "code"), [("brotli", b"b"), ("zstd", b"z"), ("snappy", b"s")])
def test_every_compression_is_read(tmp_path: Path, name: str, code: bytes) -> None:
    def packed(data: bytes) -> bytes:
        return riegeli._varint(len(data)) + bytes(pa.compress(data, codec=name, asbytes=True))

    sizes = packed(b"\x02\x03")
    _write(tmp_path / "x", b"r", 2, 5, code + bytes([len(sizes)]) + sizes + packed(b"abcde"))
    assert list(read_records(tmp_path / "x")) == [b"ab", b"cde"]


def test_uncompressed_records_are_read(tmp_path: Path) -> None:
    _write(tmp_path / "x", b"r", 3, 6, b"\0\x03\x01\x02\x03abcdef")  # an example of the format
    assert list(read_records(tmp_path / "x")) == [b"a", b"bc", b"def"]


def test_what_cannot_be_read_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, reason in (
        (b"", "too short"),
        (b"int main;", "too short"),
        (SIGNATURE[:40], "cut short"),
        (bytes(100), "does not match its hash"),
    ):
        path.write_bytes(content)
        with pytest.raises(RiegeliError, match=reason):
            list(read_records(path))
    _write(path, b"t", 1, 1, b"\0")
    with pytest.raises(RiegeliError, match="transposed"):
        list(read_records(path))
    with pytest.raises(RiegeliError, match="cannot be read"):
        list(read_records(tmp_path / "absent"))


@settings(max_examples=200)
@given(at=st.integers(0, 4_000), value=st.integers(0, 255), cut=st.booleans())
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("riegeli") / "x"
    write_records(path, [bytes(range(256)) * 20, b"second"])
    content = bytearray(path.read_bytes())
    place = at % len(content)
    content[place] = value
    path.write_bytes(content[:place] if cut else content)
    with contextlib.suppress(RiegeliError):
        assert len(list(read_records(path))) <= 2


def _write(path: Path, kind: bytes, records: int, size: int, data: bytes) -> None:
    """Write a signature and one chunk."""
    with path.open("wb") as file:
        writer = riegeli._Writer(file)
        writer.write(b"s", 0, 0, b"")
        writer.write(kind, records, size, data)
