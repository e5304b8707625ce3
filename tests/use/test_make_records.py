"""What a compile of ``nestor make`` leaves, and that it is used for its own object alone."""

import shlex
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.use.making import BUILD, LIBRARY, MAIN, MAKEFILE, OZ, digests, make, sources

UNSHARED = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc")
"""In each, process numbers start from 1, as in a container."""
CXX = (*BUILD, "CC=clang++")


def unshared(command: Path, project: Path, *options: str) -> str:
    """Build where process numbers start anew; return what is said."""
    line = [*UNSHARED, str(command), "make", *options, "--", *CXX]
    done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def can_unshare() -> None:
    done = subprocess.run([*UNSHARED, "true"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this machine makes no name spaces of processes")


@pytest.mark.usefixtures("can_unshare")
def test_process_numbers_that_come_again_mix_no_objects(command: Path, project: Path) -> None:
    app = MAIN.replace("int library", 'extern "C" int library')
    library = LIBRARY.replace("int library", 'extern "C" int library')
    (project / "app.c").write_text(app)
    (project / "lib.c").write_text(library.replace("step", "other") + "// edited\n")
    assert "1 object stays" in unshared(command, project, "--again", "0")
    (project / "lib.c").write_text(library + app.replace("main", "second"))
    (project / "app.o").touch()
    said = unshared(command, project, "--renew", "--again", "100")
    assert "2 of 2 objects compiled again" in said
    first = digests(project)
    make(command, ["make", "clean"], project)
    make(command, CXX, project)
    assert digests(project) == first


def with_header(project: Path) -> Path:
    """Let the project's main file read a header that only the environment leads to."""
    (project / "include").mkdir()
    (project / "include" / "own.h").write_text("#define HELLO 1\n")
    (project / "app.c").write_text(f"#include <own.h>\n{MAIN}")
    return project / "include"


def test_objects_are_compiled_again_in_the_environment_of_the_build(
    command: Path, project: Path
) -> None:
    with_header(project)
    (project / "Makefile").write_text(
        f"export C_INCLUDE_PATH := $(CURDIR)/include\nunexport CPATH\n{MAKEFILE}"
    )
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stderr
    first = digests(project)
    other = project / "other"
    other.mkdir()
    (other / "own.h").write_text("#error not this one\n")
    done = make(command, BUILD, project, "--renew", environment={"CPATH": str(other)})
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    assert digests(project) == first


def test_nestor_clang_leaves_the_environment_too(
    command: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = with_header(project)
    monkeypatch.setenv("NESTOR_PROGRAM", str(project / "kept"))
    line = ["env", f"CPATH={include}", *BUILD, f"CC={command} clang distilled --"]
    subprocess.run(line, cwd=project, check=True, capture_output=True)
    done = make(command, line, project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr


def test_debug_information_names_the_folder_as_the_build_does(command: Path, project: Path) -> None:
    """A shell enters folders by the names of links to them, and clang keeps that name."""
    inner = sources(project / "inner")
    (project / "link").symlink_to(inner)
    options = BUILD[1].removeprefix("CFLAGS=")
    compiles = [f"test -f {n}.o || clang {options} -g -c {n}.c" for n in ("app", "lib")]
    line = ["sh", "-c", f"cd link; {'; '.join(compiles)}"]
    done = make(command, line, project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    first = digests(inner)
    for name in first:
        (inner / name).unlink()
    make(command, line, project)
    assert digests(inner) == first


@pytest.mark.parametrize("option", ["-###", "--version", "-S", "-emit-llvm", "-xc-header"])
def test_what_makes_no_object_leaves_no_record(option: str, command: Path, project: Path) -> None:
    make(command, BUILD, project, "--policy", "never")
    line = ["clang", option, "-c", "app.c", "-o", "/dev/null"]
    done = make(command, line, project, "--policy", "never")
    assert done.returncode == 0, done.stderr
    assert not list((project / ".nestor" / "compiles").iterdir())


def test_words_of_response_files_count_as_those_of_the_command(
    command: Path, project: Path, plugin: Plugin
) -> None:
    """Whatever they say: what to compile, where to, and that it is for LTO."""
    words = {"app": f"-c {OZ} -o app.o app.c", "lib": f"-c {OZ} -flto\n-o lib.o lib.c"}
    for name, text in words.items():
        (project / f"{name}.words").write_text(text)
    done = make(command, ["sh", "-c", "clang @app.words && clang @lib.words"], project)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 object compiled again with the summary of" in done.stderr
    for_lto = project / "lib.o"
    other = project / "stock.o"
    line = [str(plugin.toolchain.clang), *OZ.split(), "-flto", "-c", "lib.c", "-o", str(other)]
    subprocess.run(line, cwd=project, check=True)
    assert for_lto.read_bytes() == other.read_bytes()
    nestor_clang = [str(command), "clang", "shipped", "--", "@lib.words"]
    said = subprocess.run(nestor_clang, cwd=project, check=True, capture_output=True, text=True)
    assert "shipped changes nothing inside LTO" in said.stderr
    assert for_lto.read_bytes() == other.read_bytes()


def test_objects_that_cannot_be_summarised_are_left_alone(command: Path, project: Path) -> None:
    """Those for other processors, some of them in ELF's format of 32 bits."""
    others = "clang -m32 -Oz -c lib.c -o boot.o && clang --target=aarch64-linux -Oz -c lib.c -o a.o"
    (project / "lib.c").write_text(
        LIBRARY.replace("#include <stdio.h>", "int printf(char *, ...);")
    )
    done = make(command, ["sh", "-c", others], project)
    assert done.returncode == 0, done.stderr
    assert "No object of the build can be summarised" in done.stderr
    assert not (project / ".nestor" / "summary.txt").exists()
    first = digests(project)
    for line in (["sh", "-c", f"{others} && {shlex.join(BUILD)}"], BUILD):
        done = make(command, line, project)
        assert done.returncode == 0, done.stderr
    assert (project / ".nestor" / "summary.txt").exists()
    assert first.items() <= digests(project).items()
