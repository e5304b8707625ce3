"""What is built once is built once, whoever comes at the same time."""

import errno
import fcntl
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from nestor.compiler.built import build_once
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain
from nestor.files import adding, locked

_SPAWN = multiprocessing.get_context("spawn")


def _build(path: Path, log: Path) -> bytes:
    def build(folder: Path) -> Path:
        with log.open("a") as lines:
            lines.write(f"{os.getpid()}\n")
        result = folder / "result"
        result.write_bytes(b"built" * 100_000)
        return result

    build_once(path, build, Path.exists)
    return path.read_bytes()


def test_several_processes_build_once(tmp_path: Path) -> None:
    path, log = tmp_path / "a cache" / "file.so", tmp_path / "log"
    with ProcessPoolExecutor(4, _SPAWN) as processes:
        contents = list(processes.map(_build, [path] * 8, [log] * 8, timeout=120))
    assert set(contents) == {b"built" * 100_000}
    assert len(log.read_text().splitlines()) == 1
    assert {p.name for p in path.parent.iterdir()} == {"file.so", "lock"}


def test_without_locks_the_first_file_stays(tmp_path: Path) -> None:
    """On a file system without locks, a second build must not replace a library that is loaded."""
    path = tmp_path / "file.so"

    def build(folder: Path) -> Path:
        with adding(path) as scratch:  # another process is faster
            scratch.write_bytes(b"first")
        second = folder / "result"
        second.write_bytes(b"second")
        return second

    build_once(path, build)
    assert path.read_bytes() == b"first"


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> Path:
        raise OSError("no compiler")

    with pytest.raises(OSError, match="no compiler"):
        build_once(tmp_path / "x.so", fail)
    assert {p.name for p in tmp_path.iterdir()} == {"lock"}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_locks(_file: object, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert _build(tmp_path / "x.so", tmp_path / "log") == b"built" * 100_000


def test_a_cache_that_cannot_be_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError), locked(tmp_path / "file" / "lock"):
        pass


def test_a_file_that_was_cut_is_built_again(toolchain: Toolchain, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "file.so"

    def build(folder: Path) -> Path:
        (folder / "x.c").write_text("int f(void) { return 1; }\n")
        command = [str(toolchain.clang), "-shared", "-o", "x.so", "x.c"]
        assert run(command, cwd=folder).ok
        return folder / "x.so"

    build_once(path, build)
    content, number = path.read_bytes(), path.stat().st_ino
    build_once(path, build)
    assert path.stat().st_ino == number
    for size in (0, 100, len(content) - 1):
        os.truncate(path, size)
        build_once(path, build)
        assert path.read_bytes() == content
