"""``nestor log`` on a terminal and off: keys stay whole, and names are readable."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import nestor

SOURCE = """
extern "C" int sink(int);
namespace a_rather_long_name_of_a_space { namespace and_another_one_inside {
struct Holder { int value; int grown(int by) const { return sink(value + by) + sink(by); } };
} }
using a_rather_long_name_of_a_space::and_another_one_inside::Holder;
int first(const Holder &h) { return h.grown(1) + h.grown(2); }
int second(const Holder &h) { return first(h) + h.grown(3); }
"""
READABLE = "a_rather_long_name_of_a_space::and_another_one_inside::Holder::grown(int) const"
MANGLED = "_ZNK29a_rather_long_name_of_a_space22and_another_one_inside6Holder5grownEi"
KEY = re.compile(r"\b[0-9a-f]{16}\b")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    (folder / "x.cpp").write_text(SOURCE)
    options = ["-mllvm", "-nestor-log=x.log", "-mllvm", "-nestor-log-names"]
    done = nestor("clang++", "never", "--", "-Oz", "-c", "x.cpp", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "x.log"


def sites(log: Path) -> list[str]:
    rows = json.loads(nestor("log", str(log), "--json").stdout)["decisions"]
    return [row["site"] for row in rows]


@pytest.mark.parametrize("columns", ["", "80"])
def test_a_pipe_gets_every_row_on_one_line(
    log: Path, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    text = nestor("log", str(log)).stdout
    own = sites(log)
    assert len(own) == 4
    for site in own:
        (line,) = (line for line in text.splitlines() if site in line)
        assert READABLE in line or "first(" in line
    assert MANGLED not in text
    mangled = nestor("log", str(log), "--mangled").stdout
    assert MANGLED in mangled
    assert READABLE not in mangled


@pytest.mark.parametrize(
    ("width", "left_out"), [(300, ""), (100, ""), (80, "logit, effect"), (60, "logit, effect")]
)
def test_a_terminal_folds_names_and_no_keys(log: Path, width: int, left_out: str) -> None:
    text = on_terminal(width, "log", str(log))
    assert sorted(KEY.findall(text)) == sorted(sites(log))
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width
    said = re.search(r"left out for want of width: (.*) \(", text)
    assert (said[1] if said else "") == left_out
    assert (READABLE in text) == (width == 300)


def on_terminal(width: int, *words: str) -> str:
    """Run the command on a terminal of so many columns and return the plain text."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "nestor", *words]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "COLUMNS": str(width)}
    process = subprocess.Popen(command, stdout=follower, stdin=follower, env=environment)
    os.close(follower)
    output = b""
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not more:
            break
        output += more
    assert process.wait() == 0
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;]*m", "", output.decode()).replace("\r\n", "\n")


def test_json_has_both_names(log: Path) -> None:
    rows = json.loads(nestor("log", str(log), "--json").stdout)["decisions"]
    named = [row for row in rows if row["callee"] == MANGLED]
    assert named
    for row in named:
        assert row["callee_demangled"] == READABLE
        assert row["copy_of"] is None or KEY.fullmatch(row["copy_of"])


def test_a_folder_of_logs_is_no_log(log: Path) -> None:
    done = nestor("log", str(log.parent))
    assert done.returncode == 1
    assert "is a folder: name one of its logs" in done.stderr.replace("\n", " ")
