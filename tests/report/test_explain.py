"""Where decisions stand in the source, and what ``nestor explain`` says about a line."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.problem.rollout import Request, Rollout
from nestor.problems.regalloc_eviction.problem import PROBLEM as EVICTION
from nestor.report.explain import Line, candidates, explain, same_file
from nestor.rollout.local_pool import LocalPool
from tests.command import nestor
from tests.inlining import PROBLEM, policy_named
from tests.report.programs import BULK, LARGE, with_lines

HOSTILE_FILE = """it's, { Line: 7 } "a|b" <b>.c"""
SOURCE = f"""extern int getchar(void);
static int large(int v) {{ return v * ({LARGE}); }}
__attribute__((always_inline)) static inline int must(int v) {{ return large(v) ^ 1; }}

int one(int v) {{ return large(v) +
                        large(v + 1); }}
int two(int v) {{ return one(v) + must(v); }}
# 41 "{HOSTILE_FILE.replace('"', chr(92) + '"')}"
int three(int v) {{ return large(v + 3); }}
int main(int c, char **v) {{ return two(c) + three(c); }}
{BULK}
"""
MAKEFILE = "p: p.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"


def captured(root: Path, plugin: Plugin, *, lines: bool) -> Corpus:
    """Capture the program, with or without the numbers of its lines."""
    source = root / "src"
    source.mkdir(parents=True)
    (source / "p.c").write_text(SOURCE)
    return with_lines(root / "corpus", plugin.toolchain, source, MAKEFILE, lines=lines)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Mapping[bool, Corpus]:
    """The program with and without line numbers."""
    root = tmp_path_factory.mktemp("lines")
    return {lines: captured(root / str(lines), plugin, lines=lines) for lines in (True, False)}


def compiled(corpus: Corpus, plugin: Plugin, policy: str) -> Rollout:
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        request = Request(
            corpus.modules[0], policy_named(policy), log=True, names=True, places=True
        )
        (done,) = pool.run([request])
    assert done.ok, done.failure
    return done


@pytest.mark.parametrize("policy", ["always", "default"])
def test_line_numbers_change_no_decision_and_no_code(
    corpora: Mapping[bool, Corpus], plugin: Plugin, policy: str
) -> None:
    with_lines, without = (compiled(corpora[lines], plugin, policy) for lines in (True, False))
    assert with_lines.trajectory is not None and without.trajectory is not None
    assert with_lines.trajectory.decisions.tolist() == without.trajectory.decisions.tolist()
    assert with_lines.outcome == without.outcome
    assert with_lines.places is not None and without.places is not None
    assert all(with_lines.places.questions)
    assert not any(without.places.questions)
    assert not without.places.functions


def test_places_are_those_of_the_calls(corpora: Mapping[bool, Corpus], plugin: Plugin) -> None:
    done = compiled(corpora[True], plugin, "always")
    assert done.places is not None and done.trajectory is not None
    log = done.trajectory
    calls = {
        (log.names[int(row["callee"]) % 2**64], place)
        for row, place in zip(log.decisions, done.places.questions, strict=True)
    }
    assert {place for callee, place in calls if callee == "one"} == {"p.c:7:25"}
    # The call that must be inlined is no question; the one that came with it is.
    places = {place.rpartition(":")[0] for callee, place in calls if callee == "large"}
    assert places == {"p.c:3", "p.c:5", "p.c:6", f"{HOSTILE_FILE}:41"}
    assert done.places.functions["two"] == "p.c:7"
    assert done.places.functions["three"] == f"{HOSTILE_FILE}:41"


def test_places_start_from_the_source_tree(tmp_path: Path, plugin: Plugin) -> None:
    """Wherever in it the compiler runs, and however it finds a header."""
    source = tmp_path / "src"
    (source / "a" / "b").mkdir(parents=True)
    (source / "h.h").write_text("extern int getchar(void);\nint small(int v);\n")
    (source / "a" / "c.h").write_text("static inline int twice(int v) { return small(v) * 2; }\n")
    text = '#include "../../h.h"\n#include <c.h>\nint small(int v) { return v; }\n'
    (source / "a" / "b" / "x.c").write_text(f"{text}int main(void) {{ return twice(small(1)); }}\n")
    makefile = "p:\n\tcd a/b && $(CC) -I.. -c x.c -o ../../x.o\n\t$(CC) -o p x.o\n"
    corpus = with_lines(tmp_path / "corpus", plugin.toolchain, source, makefile)
    done = compiled(corpus, plugin, "default")
    assert done.places is not None
    files = {place.split(":")[0] for place in done.places.questions}
    assert files == {"a/b/x.c", "a/c.h"}


def test_functions_of_a_problem_without_calls_have_places(
    corpora: Mapping[bool, Corpus], plugin: Plugin
) -> None:
    with LocalPool(EVICTION, corpora[True], plugin) as pool:
        policy = EVICTION.policy("default")
        request = Request(corpora[True].modules[0], policy, log=True, names=True, places=True)
        (done,) = pool.run([request])
    assert done.places is not None, done.failure
    assert done.places.functions["one"] == "p.c:5"


def test_a_line_is_explained(corpora: Mapping[bool, Corpus], plugin: Plugin) -> None:
    corpus = corpora[True]
    line = Line.parse("p.c:6:9")
    modules = candidates(corpus.modules, line)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        found = explain(pool, modules, policy_named("always"), line, measure=1)
        empty = explain(pool, modules, policy_named("always"), Line("p.c", 4))
        getchar = explain(pool, modules, policy_named("always"), Line("p.c", 2))
    first, *copies = found.decisions
    assert first.about["caller"] == "one"
    assert first.about["answer"] is True
    assert "too costly" in first.stock
    # What is left as it was differs from the same with this call kept.
    assert first.measured is not None and first.measured["text"] > 0
    assert all(copy.measured is None for copy in copies)
    overrides = PROBLEM.overrides().parse(f"nestor-overrides 1\n{first.override}\n")
    assert list(overrides.values()) == [False]
    assert not empty.decisions
    assert empty.near[0] in (3, 5)
    assert not getchar.decisions
    assert any("definition is unavailable" in text for _, _, text in getchar.others)


def test_an_overridden_decision_is_measured_without_the_line_about_it(
    corpora: Mapping[bool, Corpus], plugin: Plugin
) -> None:
    """A line for the call alone is stronger than the one that turns the decision round."""
    corpus, line = corpora[True], Line.parse("p.c:6:9")
    modules = candidates(corpus.modules, line)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        plain = explain(pool, modules, policy_named("default"), line, measure=1).decisions[0]
        _, number, *_ = plain.override.split()
        text = f"nestor-overrides 1\nsite-only {number} inline\n"
        over = explain(pool, modules, policy_named("default"), line, overrides=text, measure=1)
    first = over.decisions[0]
    assert (plain.about["answer"], first.about["answer"]) == (False, True)
    assert plain.measured is not None and plain.measured["text"] < 0
    assert first.measured == {name: -value for name, value in plain.measured.items()}
    assert plain.instead_of == ()
    assert first.instead_of == (f"site-only {number} inline",)


def test_modules_without_line_numbers_are_refused(
    corpora: Mapping[bool, Corpus], plugin: Plugin
) -> None:
    corpus = corpora[False]
    with (
        LocalPool(PROBLEM, corpus, plugin) as pool,
        pytest.raises(NestorError, match="--lines"),
    ):
        explain(pool, corpus.modules, policy_named("always"), Line("p.c", 6))


def test_influences_are_the_differences_of_the_logit(
    corpora: Mapping[bool, Corpus], plugin: Plugin
) -> None:
    line = Line("p.c", 7)
    with LocalPool(PROBLEM, corpora[True], plugin) as pool:
        found = explain(pool, corpora[True].modules, policy_named("mlgo2020"), line, measure=0)
    decision = found.decisions[0]
    assert decision.influences
    sizes = [abs(i.change) for i in decision.influences]
    assert sizes == sorted(sizes, reverse=True)
    for influence in decision.influences:
        assert influence.value != influence.usual


@pytest.mark.parametrize("text", ["p.c", "p.c:", ":5", "p.c:x", ""])
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(NestorError, match="FILE:LINE"):
        Line.parse(text)


def test_a_file_is_named_by_its_last_parts() -> None:
    assert same_file("src/lib/p.c", "lib/p.c")
    assert same_file("p.c", "/home/me/src/p.c")
    assert not same_file("src/xp.c", "p.c")
    assert not same_file("a/p.c", "b/p.c")
    assert Line.parse("a:b.c:12:3") == Line("a:b.c", 12)


def test_the_command_takes_a_compile_or_its_database(tmp_path: Path, plugin: Plugin) -> None:
    (tmp_path / "p.c").write_text(SOURCE)
    words = ["--policy", "always", "--measure", "0", "--level=-Oz"]
    compile_words = ["cc", "-O2", "-c", "p.c"]
    done = nestor("explain", "p.c:6", *words, "--json", "--", *compile_words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["decisions"][0]["about"]["callee"] == "large"
    entry = {"directory": str(tmp_path), "arguments": compile_words, "file": "p.c"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    again = nestor("explain", "p.c:6", *words, "--compile-commands", ".", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for decision in found["decisions"]:
        assert decision["override"] in again.stdout
    other = nestor("explain", "q.c:6", *words, "--compile-commands", ".", cwd=tmp_path)
    assert other.returncode == 1
    assert "compiles no q.c" in other.stderr
    beside = nestor("explain", "q.c:6", *words, "--", *compile_words, "-flto", cwd=tmp_path)
    assert beside.returncode == 1
    assert "was looked at in 1 module, and no other of that file" in beside.stdout
    assert "with -flto this object is stock's" in beside.stderr
    absent = nestor("explain", "q.c:6", *words, "--", "cc", "-c", "q.c", cwd=tmp_path)
    assert (
        "clang refuses the command (clang: error: no such file or directory: 'q.c')"
        in absent.stderr
    )
    assert not (tmp_path / "p.o").exists()


def test_a_c_file_beside_one_of_cxx_stays_c(tmp_path: Path, plugin: Plugin) -> None:
    """Site keys are hashes of names, and C++ has others."""
    (tmp_path / "p.c").write_text(SOURCE)
    (tmp_path / "q.cpp").write_text("int q;\n")
    words = ("explain", "p.c:6", "--policy", "always", "--measure", "0", "--json", "--")
    said = []
    for compiler in ("", "cc ", "ccache cc ", "c++ "):
        line = [*compiler.split(), "-Oz", "-c", "q.cpp", "p.c"]
        done = nestor(*words, *line, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said.append([decision["override"] for decision in json.loads(done.stdout)["decisions"]])
    assert said[0] == said[1] == said[2] != said[3]


@pytest.mark.parametrize(("level", "threshold"), [("-O2", 337), ("-O3", 375)])
def test_a_compile_is_explained_at_its_own_level(
    tmp_path: Path, plugin: Plugin, level: str, threshold: int
) -> None:
    """225 and 250, and half as much more for one block (llvm/lib/Analysis/InlineCost.cpp)."""
    (tmp_path / "p.c").write_text(SOURCE)
    words = ["--problem", "inlining-speed", "--policy", "never", "--measure", "1", "--json"]
    done = nestor("explain", "p.c:6", *words, "--", "cc", level, "-c", "p.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    stock = json.loads(done.stdout)["decisions"][0]["stock"]
    assert f"threshold={threshold})" in stock


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-O2"], "at -O2, where policies for inlining-size decide nothing: they decide at -Oz"),
        (["-O2"], ", or take --problem inlining-speed."),
        ([], "compiled at -O0: name one of -O1, -O2, -O3, -Os, -Oz with --level."),
        (["-Oz", "-O0"], "compiled at -O0"),
    ],
)
def test_levels_at_which_nothing_is_decided_are_refused(
    tmp_path: Path, plugin: Plugin, words: list[str], says: str
) -> None:
    (tmp_path / "p.c").write_text(SOURCE)
    line = ["cc", *words, "-c", "p.c"]
    done = nestor("explain", "p.c:6", "--policy", "always", "--", *line, cwd=tmp_path)
    assert done.returncode == 1
    assert says in done.stderr


def test_a_rule_is_named_in_place_of_its_logit(tmp_path: Path, plugin: Plugin) -> None:
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\n"
        'int step(int x) { for (int i = 0; i < x; i++) printf("%d %d", i * x, i);'
        ' puts("a"); puts("b"); return x * 5; }\n'
        "int main(int c, char **v) { (void)v; return step(c); }\n"
    )
    line = ["-Oz", "-ffunction-sections", "-c", "p.c", "-o", "p.o"]
    subprocess.run([plugin.toolchain.clang, *line], cwd=tmp_path, check=True)
    assert nestor("summary", "p.o", "--out", "p.txt", cwd=tmp_path).returncode == 0
    words = ("--policy", "distilled", "--summary", "p.txt", "--measure", "0")
    done = nestor("explain", "p.c:3", *words, "--", *line, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "by a rule" in done.stdout
    assert "logit" not in done.stdout


def test_a_file_that_is_no_summary_or_no_overrides_is_named(tmp_path: Path, plugin: Plugin) -> None:
    (tmp_path / "p.c").write_text(SOURCE)
    (tmp_path / "p.txt").write_text("link gc\n")
    for words, says in (
        (("--policy", "distilled", "--summary", "p.txt"), "p.txt: This is no summary"),
        (("--policy", "distilled", "--summary", "q.txt"), "q.txt cannot be read as a summary"),
        (("--overrides", "p.txt"), "p.txt: These are no overrides"),
        (
            ("--problem", "inlining-speed", "--policy", "shipped-speed", "--summary", "p.txt"),
            "Policies for inlining-speed read no summary",
        ),
    ):
        done = nestor("explain", "p.c:6", *words, "--", "cc", "-Oz", "-c", "p.c", cwd=tmp_path)
        assert done.returncode == 1
        assert says in done.stderr
