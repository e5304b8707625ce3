"""A small build under the wrappers, with the real compiler."""

import io
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nestor.compiler import toolchain as toolchains
from nestor.compiler.invocation import compile_command
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.capture import merge
from nestor.corpus.capture.build import Wrappers
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL
from nestor.corpus.level import Level
from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import LinkMode, link_command


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return toolchains.find()


@dataclass(frozen=True)
class SourceTree:
    """A source folder, its wrappers and the corpus that they write."""

    wrappers: Wrappers

    @property
    def source(self) -> Path:
        return self.wrappers.source

    @property
    def journal(self) -> Journal:
        return Journal(self.wrappers.corpus / JOURNAL)

    def write(self, name: str, text: str) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(
        self, command: Sequence[str], folder: str = ".", more: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.source / folder,
            env={**self.wrappers.environment(), **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def cc(self, *words: str, folder: str = ".") -> "subprocess.CompletedProcess[str]":
        return self.run([str(self.wrappers.cc), *words], folder)

    def cxx(self, *words: str, folder: str = ".") -> "subprocess.CompletedProcess[str]":
        return self.run([str(self.wrappers.cxx), *words], folder)

    def finalise(self) -> Corpus:
        return merge.finalise(self.wrappers.corpus, self.journal, toolchain="test")

    def at(self, level: Level) -> "SourceTree":
        """Return the same folder and corpus with wrappers that record at ``level``."""
        folder = self.wrappers.folder.with_name(f"bin{level}")
        return SourceTree(replace(self.wrappers, folder=folder, level=level).write())

    def another(self, folder: Path, project: str = "demo") -> "SourceTree":
        """Make another source folder with a corpus of its own."""
        return _tree(folder, self.wrappers.toolchain, project)

    def compile_module(self, corpus: Corpus, name: str, out: Path) -> Path:
        module = corpus.module(name)
        bitcode = corpus.bitcode(module)
        command = compile_command(self.wrappers.toolchain, module.options, bitcode, out)
        subprocess.run(command, check=True, timeout=60)
        return out

    def relink(self, corpus: Corpus, program: Program, folder: Path, mode: LinkMode = "gc") -> Path:
        """Compile the program's modules from bitcode, link them and return the executable."""
        folder.mkdir(exist_ok=True)
        objects = {
            name: self.compile_module(corpus, name, folder / f"{number}.o")
            for number, name in enumerate(program.modules)
        }
        out = folder / "program"
        command = link_command(self.wrappers.toolchain, corpus, program, objects, out, mode)
        subprocess.run(command, check=True, timeout=60)
        return out


def _tree(folder: Path, toolchain: Toolchain, project: str) -> SourceTree:
    source = folder / "source"
    source.mkdir(parents=True)
    return SourceTree(
        Wrappers(toolchain, folder / "bin", folder / "corpus", project, source).write()
    )


@pytest.fixture
def tree(tmp_path: Path, toolchain: Toolchain) -> SourceTree:
    return _tree(tmp_path, toolchain, "demo")


def tarball(members: Mapping[str, str], extra: tarfile.TarInfo | None = None) -> bytes:
    """Return a gzipped tarball of texts by name, and of one more member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            info.mode = 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
        if extra is not None:
            archive.addfile(extra)
    return buffer.getvalue()
