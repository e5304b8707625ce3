"""``nestor make`` and ``nestor flags`` in folders with unusual names."""

import os
import subprocess
from pathlib import Path

import pytest

from nestor.cli.make.place import compilers_folder
from nestor.compiler.plugin import Plugin
from tests.use.making import BUILD, OZ, digests, make, sources

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(p LANGUAGES C)
add_executable(app app.c lib.c)
"""
NAMES = ("my project", "a:b $c it's\n", os.fsdecode(b"caf\xe9"))


@pytest.mark.parametrize("name", NAMES)
def test_the_build_is_that_of_any_folder(name: str, command: Path, project: Path) -> None:
    make(command, BUILD, project)
    other = sources(project.parent / name)
    for _ in range(2):
        done = make(command, BUILD, other)
        assert done.returncode == 0, done.stderr
        assert digests(other) == digests(project)
        assert (other / ".nestor" / "summary.txt").is_file()
    make(command, ["make", "clean"], other)
    make(command, BUILD, other)
    assert digests(other) == digests(project)


@pytest.mark.usefixtures("plugin")
def test_cmake_and_ninja_in_a_folder_with_blanks(command: Path, tmp_path: Path) -> None:
    project = sources(tmp_path / "my project")
    (project / "CMakeLists.txt").write_text(CMAKE)
    flags = f"-DCMAKE_C_FLAGS={OZ}"
    configure = ["cmake", "-B", "my build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", flags]
    for words in (configure, ["cmake", "--build", "my build"]):
        done = make(command, words, project)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2 objects compiled again" in done.stderr


def test_a_build_does_not_find_its_own_compilers(
    command: Path, project: Path, plugin: Plugin
) -> None:
    """``nestor`` inside a build looks for LLVM beyond them, wherever they are."""
    other = sources(project.parent / "my project")
    line = f"{command} flags shipped && clang -Oz -c app.c"
    done = make(command, ["sh", "-c", line], other)
    assert done.returncode == 0, done.stderr
    assert str(plugin.path) in done.stdout


def test_no_folder_for_the_compilers_is_one_sentence(
    command: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sources(project.parent / "my project")
    monkeypatch.setenv("NESTOR_CACHE", str(project.parent / "my cache"))
    done = make(command, BUILD, other)
    assert done.returncode == 1
    assert "name a folder without blanks and quotes by --summary." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (other / ".nestor").exists()
    folder = str(project / "kept")
    assert compilers_folder(folder) == f"{folder}/bin"


def test_flags_name_what_is_there_whatever_its_name(
    command: Path, plugin: Plugin, tmp_path: Path
) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "x.c").write_text("int f(int x) { return x + 1; }\n")
    clang = str(plugin.toolchain.clang)
    for line in (
        f'eval "{clang} -Oz $({command} flags shipped --install inst) -c x.c"',
        "inst/clang -Oz -c x.c",
    ):
        done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
