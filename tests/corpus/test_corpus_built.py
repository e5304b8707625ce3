"""The objects of an ordinary build: what is found, what counts once, what is refused."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.built_objects import BuiltError, find_objects


@pytest.fixture
def build(tmp_path: Path, toolchain: Toolchain) -> Path:
    """Two objects, a library that holds one of them and a third, and what builds leave about."""
    folder = tmp_path / "build"
    (folder / "sub" / ".libs").mkdir(parents=True)
    for name in ("a", "sub/b", "sub/c"):
        source = folder / f"{name}.c"
        source.write_text(f"int {source.stem}(int v) {{ return v + {ord(source.stem)}; }}\n")
        words = ["-Oz", "-c", str(source), "-o", str(source.with_suffix(".o"))]
        subprocess.run([toolchain.clang, *words], check=True)
    ar = toolchain.clang.parent / "llvm-ar"
    objects = [folder / "sub" / "b.o", folder / "sub" / "c.o"]
    subprocess.run([ar, "crs", folder / "libbc.a", *objects], check=True)
    objects[1].unlink()
    # What libtool compiles for shared libraries, and a file that bears the name only.
    shutil.copy(folder / "a.o", folder / "sub" / ".libs" / "b.o")
    (folder / "notes.o").write_text("todo")
    return folder


def test_a_folder_counts_each_object_once(build: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    built = find_objects([build], copies)
    names = [item.name.removeprefix(f"{build}/") for item in built.objects]
    assert names == ["a.o", "libbc.a(b.o)", "libbc.a(c.o)"]
    assert built.skipped == 1
    assert all(item.path.read_bytes().startswith(b"\x7fELF") for item in built.objects)
    again = find_objects([build / "a.o", build / "libbc.a", build], copies)
    assert {item.name for item in again.objects} == {item.name for item in built.objects}


def test_what_cannot_be_read_is_said(build: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    copies, empty = tmp_path / "copies", tmp_path / "empty"
    copies.mkdir()
    empty.mkdir()
    for place, said in (
        (tmp_path / "absent", "does not exist"),
        (empty, "no object file in"),
        (build / "a.c", "is no object file"),
        (toolchain.clang, "is a linked file"),
    ):
        with pytest.raises(BuiltError, match=said):
            find_objects([place], copies)
    cut = (build / "libbc.a").read_bytes()[:-40]
    (build / "libbc.a").write_bytes(cut)
    with pytest.raises(BuiltError, match=r"is cut short; build it again"):
        find_objects([build], copies)
    flto = ["-Oz", "-flto", "-c", str(build / "a.c"), "-o", str(build / "a.o")]
    subprocess.run([toolchain.clang, *flto], check=True)
    (build / "libbc.a").unlink()
    assert [i.path.name for i in find_objects([build], copies).objects] == ["b.o"]
    for path in build.rglob("b.o"):
        path.unlink()
    for place in (build, build / "a.o"):
        with pytest.raises(BuiltError, match="without -flto"):
            find_objects([place], copies)
