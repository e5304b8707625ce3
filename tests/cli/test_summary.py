"""``nestor summary`` and --summary, from an ordinary build to a compile that reads the file."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.problems.inlining_size import PROBLEM
from nestor.problems.inlining_size.summary.program_summary import load
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.command import nestor

OPTIONS = ("-Oz", "-ffunction-sections", "-fdata-sections")


@pytest.fixture
def build(small_corpus: Corpus, tmp_path: Path, toolchain: Toolchain) -> Path:
    """The build of the corpus's program ``one`` as its users make it."""
    folder = tmp_path / "build"
    folder.mkdir()
    source = small_corpus.root.parent / "sources" / "one" / "one.c"
    subprocess.run([toolchain.clang, *OPTIONS, "-c", source, "-o", folder / "one.o"], check=True)
    return folder


def test_a_build_and_a_corpus_give_the_same_summary(
    build: Path, small_corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "program.txt"
    done = nestor("summary", str(build), "--out", str(out), "--link", "icf", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["objects"], said["link"], said["warnings"]) == (1, "icf", [])
    assert said["functions"] == len(load(out).functions) > 0
    program = small_corpus.program("one/one")
    with LocalPool(PROBLEM, small_corpus, plugin, PoolSettings(jobs=1)) as pool:
        texts = PROBLEM.summaries(pool, [program], ["icf"])
    assert out.read_text() == texts[program.name, "icf"]
    assert [p.name for p in out.parent.iterdir()] == ["program.txt"]


def test_a_compile_reads_it(build: Path, tmp_path: Path, small_corpus: Corpus) -> None:
    summary, log = tmp_path / "a summary.txt", tmp_path / "log"
    done = nestor("summary", str(build), "--out", str(summary))
    assert done.returncode == 0, done.stderr
    assert "use it:" in done.stdout
    shown = nestor("flags", "distilled", "--summary", "a summary.txt", cwd=tmp_path)
    (copy,) = re.findall(r"-nestor-program=(\S+)", shown.stdout)
    assert Path(copy).read_bytes() == summary.read_bytes()
    (kept,) = re.findall(r"-nestor-trials=(\S+)", shown.stdout)
    assert Path(kept).is_absolute() and Path(kept).parent.name == "trials"
    assert "-nestor-trials" not in nestor("flags", "distilled", cwd=tmp_path).stdout
    source = small_corpus.root.parent / "sources" / "one" / "one.c"
    words = ["-c", str(source), "-o", "one.o", "-Xclang", "-mllvm", "-Xclang", f"-nestor-log={log}"]
    done = nestor(
        "clang", "distilled", "--summary", str(summary), "--", *OPTIONS, *words, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "one.o").exists() and log.exists()


def test_what_is_wrong_is_said_before_any_compile(build: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.txt"
    old.write_text("nestor-program 0\nlink gc\n")
    for file, said in ((old, "of another format"), (tmp_path / "absent.txt", "cannot be read")):
        done = nestor("clang", "distilled", "--summary", str(file), "--", "-Oz", "-c", "none.c")
        assert done.returncode == 1
        assert said in done.stderr and "'nestor summary'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    for place, said in ((tmp_path / "absent", "does not exist"), (old, "is no object file")):
        done = nestor("summary", str(place), "--out", str(tmp_path / "out.txt"))
        assert done.returncode == 1
        assert said in done.stderr
    assert not (tmp_path / "out.txt").exists()
    done = nestor("summary", str(build), "--out", str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path} is a folder: name a file to write" in done.stderr


def test_warnings_name_the_remedy(build: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    (build / "broken.o").write_text("no object")
    (build / "two.c").write_text("int f(int v) { return v; } int main(void) { return f(0); }")
    subprocess.run([toolchain.clang, "-Oz", "-fno-function-sections", "-c", "two.c"], cwd=build)
    other = 'asm(".section .comment\\n.asciz \\"GCC: (Debian) 12.2.0\\"");'
    (build / "other.c").write_text(other)
    subprocess.run([toolchain.clang, "-Oz", "-c", "other.c"], cwd=build)
    done = nestor("summary", str(build), "--out", str(tmp_path / "out.txt"), "--json")
    warnings = json.loads(done.stdout)["warnings"]
    for said in (
        "1 files that are named like",
        "1 of 3 objects were compiled without",
        "2 objects def",
    ):
        assert any(said in warning for warning in warnings), warnings
    assert any("1 of 3 objects were made by another compiler" in warning for warning in warnings)
    shown = nestor("summary", str(build), "--out", str(tmp_path / "out.txt"))
    assert shown.stdout.count("warning:") == len(warnings) == 4
