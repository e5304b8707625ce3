"""Files of a corpus that nobody can read to their end: named pipes, devices, huge sparse files."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.corpus import store
from nestor.corpus.model import CorpusError

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree

PACKAGE = str(Path(store.__file__).parents[2])
MEMORY = 1 << 30
"""Bytes of address space in which every command below must do."""


@pytest.fixture
def corpus(tree: SourceTree) -> Path:
    """A corpus that has a file of each kind."""
    tree.write("main.c", "int f(void); int main(void) { return f(); }\n")
    tree.write("f.S", ".globl f\nf: xor %eax, %eax\n ret\n.section .note.GNU-stack\n")
    for name in ("main.c", "f.S"):
        assert tree.cc("-c", name).returncode == 0
    assert tree.cc("main.o", "f.o", "-o", "prog").returncode == 0
    found = tree.finalise()
    digest = hashlib.sha256(b"text").hexdigest()
    (project,) = found.projects
    store.save(replace(found, projects=(replace(project, inputs=(("in.txt", digest),)),)))
    found.input(digest).parent.mkdir()
    found.input(digest).write_bytes(b"text")
    store.verify(store.load(found.root))
    return found.root


def spoil(path: Path, kind: str) -> None:
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(2 << 30)


def nestor(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nestor", *words],
        env={**os.environ, "PYTHONPATH": PACKAGE, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
@pytest.mark.parametrize(
    "pattern", ["manifest.json", "*/main.o.cmd", "*/main.o.bc", "foreign/*.o", "inputs/*"]
)
def test_a_file_that_does_not_end_is_refused(corpus: Path, pattern: str, kind: str) -> None:
    (path,) = corpus.glob(pattern)
    spoil(path, kind)
    done = nestor("corpus", "info", str(corpus))
    assert done.returncode == 1
    assert done.stderr.startswith("nestor: ")
    assert str(corpus) in done.stderr
    if (pattern, kind) != ("*/main.o.bc", "device"):  # a link out of the folder is named so
        assert path.name in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
@pytest.mark.parametrize("pattern", ["corpus_description.json", "*/main.o.bc"])
def test_in_llvms_layout_too(corpus: Path, pattern: str, kind: str) -> None:
    (corpus / "manifest.json").unlink()
    (path,) = corpus.glob(pattern)
    spoil(path, kind)
    done = nestor("corpus", "info", str(corpus))
    assert (done.returncode, done.stderr.startswith("nestor: ")) == (1, True)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_a_database_of_commands_that_does_not_end_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "compile_commands.json"
    path.write_text(json.dumps([]))
    spoil(path, kind)
    words = ["corpus", "capture", "--out", str(tmp_path / "out"), "--compile-commands", str(path)]
    done = nestor(*words)
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_pipe_as_response_file_does_not_stop_the_build(tree: SourceTree) -> None:
    tree.write("a.c", "int a;\n")
    os.mkfifo(tree.source / "words")
    shell = f"(echo -c > words) & {tree.wrappers.cc} @words a.c -o a.o"
    done = tree.run(["sh", "-c", shell])
    assert (done.returncode, (tree.source / "a.o").exists()) == (0, True)
    assert "cannot be read again" in done.stderr


def test_absent_files_are_for_those_who_need_them(corpus: Path) -> None:
    (path,) = corpus.glob("*/main.o.bc")
    path.unlink()
    loaded = store.load(corpus)
    assert nestor("corpus", "info", str(corpus), "--json").returncode == 0
    with pytest.raises(CorpusError, match="missing"):
        store.verify(loaded)
    shutil.rmtree(corpus)
    with pytest.raises(CorpusError, match="no corpus"):
        store.load(corpus)
