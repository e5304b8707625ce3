"""Reading static libraries, also damaged ones."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nestor.corpus.archive import ArchiveError, is_archive, members


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for name, content in (("a.o", b"odd"), ("a_name_of_more_than_fifteen.o", b"even"), ("z", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        made.append(path)
    return made


@pytest.mark.parametrize("flags", ["rcs", "rcsT"])
@pytest.mark.parametrize("ar", ["ar", "llvm-ar-22"])
def test_members(tmp_path: Path, files: list[Path], flags: str, ar: str) -> None:
    subprocess.run([ar, flags, "lib.a", *(p.name for p in files)], cwd=tmp_path, check=True)
    found = list(members(tmp_path / "lib.a"))
    assert found == [(p.name, p.read_bytes()) for p in files]


def test_bsd_names(tmp_path: Path, files: list[Path]) -> None:
    names = [p.name for p in files]
    subprocess.run(["llvm-ar-22", "--format=bsd", "rcs", "lib.a", *names], cwd=tmp_path, check=True)
    found = dict(members(tmp_path / "lib.a"))
    assert found.keys() == set(names)
    assert found["a_name_of_more_than_fifteen.o"].rstrip(b"\n") == b"even"


def test_every_cut_and_every_flipped_byte_is_survived(tmp_path: Path, files: list[Path]) -> None:
    subprocess.run(["ar", "rcs", "lib.a", *(p.name for p in files)], cwd=tmp_path, check=True)
    whole = (tmp_path / "lib.a").read_bytes()
    assert is_archive(whole)
    damaged = tmp_path / "damaged.a"
    variants = [whole[:size] for size in range(len(whole))]
    variants += [
        whole[:i] + bad + whole[i + 1 :] for i in range(len(whole)) for bad in (b"-", b"/")
    ]
    for variant in variants:
        damaged.write_bytes(variant)
        try:
            list(members(damaged))
        except ArchiveError:
            continue


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_library_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    library = tmp_path / "any.a"
    library.write_bytes(b"!<arch>\n" + content)
    try:
        for _, body in members(library):
            assert len(body) <= len(content)
    except ArchiveError:
        pass
