"""From a program that misbehaves under a policy to the one decision, and back to a good program."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.problems.inlining_size.search.overrides import load
from tests.command import nestor
from tests.conftest import make_corpus

BULK = "\n".join(
    f'int bulk_{number}(int v) {{ return printf("%d %d", v, {number}) + printf("%d", v); }}'
    for number in range(100)
)
"""Lets a module grow without coming near the cap of LLVM, which is twice its size."""
BULK = f"extern int printf(const char *, ...);\n{BULK}"

LARGE = " + ".join(["getchar()"] * 30)
"""The default leaves calls of what is as large as this alone; the policy "always" does not."""

# probe() asks whether it shares its frame with same(), which is true where same() is inlined; the
# comparison keeps it from being a tail call.
PROBE = f"""
{BULK}
extern int getchar(void);
static int same(void *outer) {{
  if (outer == 0) return {LARGE};
  return __builtin_frame_address(0) == outer;
}}
int probe(void) {{ return same(__builtin_frame_address(0)) == 1; }}
int unused_twice(void) {{ return same(0) + same(0); }}
"""
OTHER = f"""
{BULK.replace("bulk", "more")}
extern int getchar(void);
static int large(int v) {{ return v * ({LARGE}); }}
int one(int v) {{ return large(v) + large(v + 1); }}
int two(int v) {{ return large(v) + large(v + 2); }}
"""
MAIN = """
extern int probe(void), one(int), two(int);
int main(int c, char **v) { return c > 9 ? one(c) + two(c) : probe(); }
"""
MAKEFILE = "p: probe.o other.o main.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"


@pytest.fixture
def corpus(tmp_path: Path, toolchain: Toolchain) -> Corpus:
    folder = tmp_path / "sources"
    folder.mkdir()
    for name, text in {"probe": PROBE, "other": OTHER, "main": MAIN}.items():
        (folder / f"{name}.c").write_text(text)
    return make_corpus(tmp_path / "corpus", toolchain, {}, {"p": (folder, MAKEFILE)})


def bisect(corpus: Corpus, out: Path, *words: str) -> Any:
    """Search with the command ``words``; return the result of a search that succeeds."""
    options = ["--corpus", str(corpus.root), "--bad", "always", "--out", str(out), "--json"]
    done = nestor("bisect", "p", *options, "--", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_decision_is_found_and_undone(corpus: Corpus, tmp_path: Path) -> None:
    out, program = tmp_path / "found", tmp_path / "program"
    found = bisect(corpus, out, "{}")
    assert found["deviations"] >= 5
    (cause,) = found["causes"]
    assert cause["modules"] == ["p/probe.o"]
    (decision,) = cause["decisions"]
    assert decision["about"] == "same in probe"
    lines = load(out / "overrides.txt")
    assert [str(key) for key in lines] == decision["overrides"]
    assert list(lines.values()) == [False]

    build = ["build", "p", "--corpus", str(corpus.root), "--policy", "always", "--json"]
    for more, status in (((), 1), (("--overrides", str(out / "overrides.txt")), 0)):
        done = nestor(*build, "--out", str(program), *more)
        assert done.returncode == 0, done.stderr
        assert subprocess.run([program], check=False).returncode == status

    again = bisect(corpus, out, "{}")
    assert again["causes"] == found["causes"]
    # Both ends are run again on purpose; all else is known.
    assert again["tests"] == 2 < found["tests"]


def test_a_symbol_that_disappears(corpus: Corpus, tmp_path: Path) -> None:
    """Several decisions can be needed, and there is more than one way to undo them."""
    found = bisect(corpus, tmp_path / "found", "sh", "-c", "nm {} | grep -q ' t large'")
    decisions = [d["about"] for cause in found["causes"] for d in cause["decisions"]]
    assert decisions
    assert set(decisions) <= {"large in one", "large in two"}
    assert {m for cause in found["causes"] for m in cause["modules"]} == {"p/other.o"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("true",), "where the program goes"),
        (("true", "{}"), "Under 'always' the program is good"),
        (("false", "{}"), "Under the default the program is bad"),
        (("sh", "-c", "exit 125 # {}"), "Under the default the program is unresolved"),
        (("./nothing", "{}"), "cannot be run"),
        (("sh", "-c", "nothing-of-this-name {}"), "cannot be run"),
    ],
)
def test_what_cannot_be_searched_is_said(
    corpus: Corpus, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    options = ["--corpus", str(corpus.root), "--bad", "always", "--out", str(tmp_path / "out")]
    done = nestor("bisect", "p", *options, "--", *words)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out" / "overrides.txt").exists()


def test_a_command_that_does_not_repeat_itself(corpus: Corpus, tmp_path: Path) -> None:
    # Good once, and bad from then on.
    script = f"test ! -e {tmp_path}/ran && touch {tmp_path}/ran && test -e {{}}"
    options = ["--corpus", str(corpus.root), "--bad", "always", "--out", str(tmp_path / "out")]
    done = nestor("bisect", "p", *options, "--", "sh", "-c", script)
    assert done.returncode == 1
    assert "now this, now that" in " ".join(done.stderr.split())


def test_a_hang_is_bad(corpus: Corpus, tmp_path: Path) -> None:
    options = ["--corpus", str(corpus.root), "--bad", "always", "--out", str(tmp_path / "out")]
    script = "{} || sleep 1000"
    more = ["--seconds", "3", "--json"]
    done = nestor("bisect", "p", *options, *more, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    (cause,) = json.loads(done.stdout)["causes"]
    assert [d["about"] for d in cause["decisions"]] == ["same in probe"]


def test_record_replays_a_policy_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "lines.txt"
    where = ["--corpus", str(corpus.root), "--policy", "always", "--out", str(out), "--json"]
    done = nestor("overrides", "record", "p", *where)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (len(found["same"]), found["other"]) == (3, {})
    lines = load(out)
    assert len(lines) == found["lines"] >= 5
    assert all(lines.values())
