"""Blocks of a corpus, and compiling its modules for speed."""

import subprocess
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError
from nestor.cost.sources import corpus as corpus_source
from nestor.cost.sources import objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.extraction import SourceError, extract
from nestor.cost.sources.settings import CompileSettings, ExtractSettings
from nestor.cost.sources.speed_object import DEFAULT_OPTIONS, compile_for_speed, speed_options
from tests.conftest import SOURCE

# A loop that -O2 turns into vector code, and -Oz does not.
LOOP = """
void f(float *restrict a, const float *restrict b, int n) {
  for (int i = 0; i < n; i++) a[i] += b[i] * 2;
}
int g(int x) { return x / 7; }
"""


def text_of(path: Path, toolchain: Toolchain) -> str:
    said = subprocess.run(
        [toolchain.prefix / "bin" / "llvm-objdump", "-d", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return said.split("file format", 1)[1]


def test_bitcode_for_size_compiles_to_what_the_source_does_for_speed(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    (tmp_path / "s.c").write_text(LOOP)
    clang = str(toolchain.clang)
    for words in (
        ["-Oz", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-o", "size.bc"],
        ["-O2", "-fPIE", "-ffunction-sections", "-o", "speed.o"],
        ["-Oz", "-fPIE", "-ffunction-sections", "-o", "size.o"],
    ):
        subprocess.run([clang, "-c", "s.c", *words], cwd=tmp_path, check=True)
    outcome = compile_for_speed(
        toolchain, DEFAULT_OPTIONS, tmp_path / "size.bc", tmp_path / "ours.o"
    )
    assert outcome.ok, outcome.reason
    ours = text_of(tmp_path / "ours.o", toolchain)
    assert ours == text_of(tmp_path / "speed.o", toolchain)
    assert ours != text_of(tmp_path / "size.o", toolchain)
    found = Collection()
    objects.read(tmp_path / "ours.o", found)
    assert found.mapped == found.functions == 2


def test_the_level_of_a_recorded_line_is_replaced() -> None:
    recorded = ("-cc1", "-triple", "x86_64-pc-linux-gnu", "-Oz", "-emit-obj", "-vectorize-slp")
    options = speed_options((*recorded, "-fno-plt"))
    assert options[:5] == ("-cc1", "-triple", "x86_64-pc-linux-gnu", "-emit-obj", "-fno-plt")
    assert [o for o in options if o.startswith("-O")] == ["-O2"]
    assert options.count("-vectorize-slp") == 1


def test_a_corpus_gives_the_blocks_of_all_modules(
    small_corpus: Corpus, toolchain: Toolchain, tmp_path: Path
) -> None:
    settings = CompileSettings(jobs=2)
    seen: list[tuple[int, int]] = []
    found = Collection()
    corpus_source.read(
        small_corpus,
        toolchain,
        settings,
        found,
        progress=lambda _stage, done, total: seen.append((done, total)),
    )
    assert seen == [(1, 2), (2, 2)]
    assert (found.files, found.failures) == (2, {})
    assert found.mapped == found.functions > 0
    table = found.table()
    assert set(table.source or ()) == {small_corpus.modules[0].name}  # the second repeats it
    one = Collection()
    corpus_source.read(small_corpus, toolchain, settings, one, projects=("two",))
    assert set(one.table().source or ()) == {small_corpus.modules[1].name}
    assert set(one.table().blocks) == set(table.blocks)
    with pytest.raises(CorpusError, match="no project three"):
        corpus_source.read(small_corpus, toolchain, settings, one, projects=("three",))
    whole = extract([small_corpus.root], lambda: toolchain, ExtractSettings(compiling=settings))
    assert whole.table().blocks == table.blocks


def test_modules_that_do_not_compile_are_counted(
    small_corpus: Corpus, toolchain: Toolchain
) -> None:
    small_corpus.bitcode(small_corpus.modules[0]).write_bytes(b"BC\xc0\xdeno")
    found = Collection()
    corpus_source.read(small_corpus, toolchain, CompileSettings(jobs=1), found)
    assert found.files == 1
    assert sum(found.failures.values()) == 1
    assert len(found) > 0


def test_folders_of_objects_are_read(tmp_path: Path, toolchain: Toolchain) -> None:
    def no_toolchain() -> Toolchain:
        raise AssertionError("nothing must be compiled")

    folder = tmp_path / "build" / "deep"
    folder.mkdir(parents=True)
    (tmp_path / "s.c").write_text(SOURCE)
    command = [str(toolchain.clang), "-O2", "-c", "s.c", "-o", str(folder / "s.o")]
    subprocess.run(command, cwd=tmp_path, check=True)
    (folder / "notes").write_text("no code")
    (folder / "cut.o").write_bytes((folder / "s.o").read_bytes()[:100])
    found = extract([tmp_path / "build"], no_toolchain, ExtractSettings())
    assert (found.files, sum(found.failures.values())) == (1, 1)
    with pytest.raises(SourceError, match="holds no object"):
        (tmp_path / "empty").mkdir()
        extract([tmp_path / "empty"], no_toolchain, ExtractSettings())
    with pytest.raises(SourceError, match="There is no"):
        extract([tmp_path / "absent"], no_toolchain, ExtractSettings())
