"""The oldest release that is tested: identity, its policies, and what it refuses, by name."""

import json
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, CorpusError
from nestor.evaluate.identity import check_programs, check_units
from nestor.problems.inlining_size.problem import PROBLEM
from nestor.rollout import gate
from nestor.rollout.local_pool import LocalPool
from tests.command import nestor
from tests.conftest import SOURCE as WALK
from tests.conftest import make_corpus
from tests.inlining import policy_named
from tests.plugin.support import CXX_SOURCE, NEVER, SOURCE, Workbench

MAKEFILE = "all: a.o\n\t$(CXX) -shared -o lib.so $^\na.o: a.cpp\n\t$(CXX) -fPIC -O2 -c $<\n"


@pytest.fixture(scope="module")
def older_corpus(older_plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Return modules of C and C++ captured by the older compiler."""
    folder = tmp_path_factory.mktemp("older")
    work = folder / "cxx"
    work.mkdir()
    (work / "a.cpp").write_text(CXX_SOURCE)
    sources = {"walk": WALK, "units": SOURCE + "int sink(int v) { return v; } int main() {}"}
    return make_corpus(
        folder / "corpus", older_plugin.toolchain, sources, {"cxx": (work, MAKEFILE)}
    )


def test_the_gate_holds(older_plugin: Plugin) -> None:
    result = gate.check(PROBLEM, older_plugin)
    assert result.identical
    assert result.checked == 12  # idle, default and logged; the channel has no default here


@pytest.mark.parametrize(
    "name", ["default", "shipped", "shipped-lto", "distilled", "distilled-lto", "mlgo2020"]
)
def test_release_and_logged_advisors_agree(
    older_corpus: Corpus, older_plugin: Plugin, name: str
) -> None:
    with LocalPool(PROBLEM, older_corpus, older_plugin) as pool:
        result = check_units(pool, older_corpus.modules, policy_named(name))
    assert result.failures == ()
    assert result.holds
    assert len(result.modules) == 3
    assert result.decisions > 20


@pytest.mark.parametrize("build", ["full-lto", "thin-lto"])
def test_inside_the_linker(older_corpus: Corpus, older_plugin: Plugin, build: str) -> None:
    with LocalPool(PROBLEM, older_corpus, older_plugin) as pool:
        builds = [PROBLEM.builds()[build]]
        result = check_programs(pool, builds, older_corpus.programs, policy_named("default"))
    assert result.failures == ()
    assert result.holds
    assert result.decisions > 0


def test_a_policy_decides(older_plugin: Plugin, tmp_path: Path) -> None:
    bench = Workbench(older_plugin, tmp_path)
    stock = bench.compile(SOURCE).bytes
    never = bench.compile(SOURCE, NEVER, log=True)
    assert never.bytes != stock
    assert set(never.decisions.values()) == {0}
    assert bench.compile(SOURCE, NEVER).bytes == never.bytes


def test_flags_for_a_build(older_plugin: Plugin, tmp_path: Path) -> None:
    clang = older_plugin.toolchain.clang
    done = nestor("flags", "never", "--llvm", str(clang))
    assert done.returncode == 0, done.stderr
    (tmp_path / "u.c").write_text(SOURCE)
    bench = Workbench(older_plugin, tmp_path)
    command = [str(clang), "-Werror", "-Oz", *done.stdout.split(), "-c", "u.c", "-o"]
    released = bench.run([*command, "f.o"], tmp_path / "f.o", tmp_path / "log").bytes
    assert released == bench.compile(SOURCE, NEVER, name="u.c").bytes
    compile_it = ("-Oz", "-c", "u.c", "-o", "c.o")
    done = nestor("clang", "never", "--llvm", str(clang), "--", *compile_it, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.o").read_bytes() == released


@pytest.mark.parametrize(
    ("option", "lacks"),
    [
        ("-nestor-function-log=x", "the function log needs LLVM 22"),
        ("-nestor-eviction=default", "policies about register allocation need LLVM 22"),
        ("-nestor-priority=default", "policies about register allocation need LLVM 22"),
        ("-nestor-vocabulary=words", "vocabularies need LLVM 22"),
    ],
)
def test_what_it_lacks_is_refused_by_name(
    older_plugin: Plugin, tmp_path: Path, option: str, lacks: str
) -> None:
    bench = Workbench(older_plugin, tmp_path)
    (tmp_path / "words").write_text("nestor-vocabulary 1\ndimension 1\n")
    result = bench.compile(SOURCE, "default", option)
    assert result.returncode == 1
    assert f"{lacks}, and this is LLVM {older_plugin.toolchain.version}" in result.stderr
    assert "Stack dump" not in result.stderr
    assert not result.object.exists()
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("direction", ["newer in older", "older in newer"])
def test_the_plugin_of_another_release_ends_the_compiler_with_a_sentence(
    plugin: Plugin, older_plugin: Plugin, tmp_path: Path, direction: str, early: bool
) -> None:
    used, by = (plugin, older_plugin) if direction == "newer in older" else (older_plugin, plugin)
    (tmp_path / "u.c").write_text("int f(void) { return 0; }\n")
    words = [f"-fplugin={used.path}"] if early else []
    done = subprocess.run(
        [by.toolchain.clang, *words, f"-fpass-plugin={used.path}", "-Oz", "-c", "u.c"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"nestor: this plugin is for LLVM {used.toolchain.version}, and")
    assert by.toolchain.version in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["u.c"]


@pytest.mark.parametrize("direction", ["newer in older", "older in newer"])
def test_the_plugin_of_another_release_ends_the_linker_with_a_sentence(
    plugin: Plugin, older_plugin: Plugin, tmp_path: Path, direction: str
) -> None:
    used, by = (plugin, older_plugin) if direction == "newer in older" else (older_plugin, plugin)
    (tmp_path / "u.c").write_text("int f(void) { return 0; }\n")
    done = subprocess.run(
        [by.toolchain.clang, "-Oz", "-flto", "-fuse-ld=lld", "-nostdlib", "-shared", "u.c",
         f"-Wl,-mllvm,-load={used.path}", "-o", "u"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count(f"nestor: this plugin is for LLVM {used.toolchain.version}, and") == 1


def test_problems_that_it_cannot_decide_are_refused(
    older_plugin: Plugin, older_corpus: Corpus
) -> None:
    llvm = str(older_plugin.toolchain.prefix)
    for words in (
        ("flags", "shipped-eviction", "--llvm", llvm),
        ("identity", str(older_corpus.root), "--problem", "regalloc-priority",
         "--llvm", llvm),
    ):  # fmt: skip
        done = nestor(*words)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1
        assert "lacks policies about register allocation, which LLVM 22" in done.stderr


def test_a_corpus_of_a_newer_release_is_refused(older_plugin: Plugin, small_corpus: Corpus) -> None:
    newer, older = small_corpus.toolchain, older_plugin.toolchain.version
    with pytest.raises(CorpusError, match=f"captured by LLVM {newer}, and LLVM {older} .*cannot"):
        LocalPool(PROBLEM, small_corpus, older_plugin)


def test_a_corpus_of_an_older_release_can_be_read(plugin: Plugin, older_corpus: Corpus) -> None:
    with LocalPool(PROBLEM, older_corpus, plugin) as pool:
        result = check_units(pool, older_corpus.modules[:1], policy_named("default"))
    assert result.holds


def test_doctor_says_what_is_missing(older_plugin: Plugin) -> None:
    done = nestor("doctor", "--llvm", str(older_plugin.toolchain.clang), "--json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["toolchains"]
    assert entry["capabilities"]["support"] == "tested"
    assert "the function log" in entry["capabilities"]["lacks"]
    assert entry["identity"]["identical"] is True
    assert "regalloc-eviction" not in entry["identity"]["problems"]
