"""``nestor overrides check`` as its users meet it."""

import json
import os
from pathlib import Path

from nestor.corpus.model import Corpus
from tests.command import nestor

HEAD = "nestor-overrides 1\n"
GONE = "site 00000000000000aa keep  # step in a_function_that_is_gone\n"


def test_a_program_of_a_corpus_is_compiled(small_corpus: Corpus, tmp_path: Path) -> None:
    corpus = str(small_corpus.root)
    module = small_corpus.programs[0].modules[0]
    done = nestor("log", "--corpus", corpus, "--unit", module, "--policy", "never", "--json")
    site = json.loads(done.stdout)["decisions"][0]["site"]
    program = small_corpus.programs[0].name
    words = ["--corpus", corpus, "--program", program, "--policy", "never"]
    file = tmp_path / "fixes"
    file.write_text(f"{HEAD}site {site} inline\n")
    good = nestor("overrides", "check", str(file), *words)
    assert (good.returncode, good.stdout) == (0, f"{file}: 0 of 1 lines match nothing\n")
    file.write_text(f"{HEAD}site {site} inline\n{GONE}")
    stale = nestor("overrides", "check", str(file), *words)
    assert stale.returncode == 1
    assert "1 of 2 lines match nothing" in stale.stdout
    assert "  site 00000000000000aa  # step in a_function_that_is_gone\n" in stale.stdout
    data = json.loads(nestor("overrides", "check", str(file), *words, "--json").stdout)
    assert data["lines"] == 2
    assert [line["key"] for line in data["unmatched"]] == ["site 00000000000000aa"]


def test_the_logs_of_a_build_are_read(tmp_path: Path) -> None:
    options = ["-mllvm", f"-nestor-log={tmp_path / 'logs'}/", "-mllvm", "-nestor-log-names"]
    for name in ("one", "two"):
        (tmp_path / f"{name}.c").write_text(
            f"int sink(int); static int h{name}(int v) {{ return sink(v) + sink(2 * v); }}\n"
            f"int {name}(int v) {{ return h{name}(v) * h{name}(v + 1); }}\n"
        )
        done = nestor("clang", "never", "--", "-Oz", "-c", f"{name}.c", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    logs = sorted((tmp_path / "logs").iterdir())
    assert len(logs) == 2
    sites = [
        row["site"]
        for log in logs
        for row in json.loads(nestor("log", str(log), "--json").stdout)["decisions"]
    ]
    assert len(sites) == 4
    file = tmp_path / "fixes"
    file.write_text(HEAD + "".join(f"site {site} keep\n" for site in sites))
    words = ["overrides", "check", str(file), "--logs"]
    assert nestor(*words, str(tmp_path / "logs")).returncode == 0
    alone = nestor(*words, str(logs[0]))
    assert alone.returncode == 1
    assert "2 of 4 lines match nothing" in alone.stdout


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    file = tmp_path / "fixes"
    file.write_text(HEAD)
    for words, said in (
        ([], "--logs"),
        (["--corpus", "x"], "--program NAME"),
        (["--logs", str(tmp_path / "none")], "There is no log"),
        (["--logs", str(file)], "no complete trajectory log"),
    ):
        done = nestor("overrides", "check", str(file), *words)
        assert done.returncode == 1, words
        assert said in done.stderr.replace("\n", " "), done.stderr
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        done = nestor("overrides", "check", str(path), "--logs", "x")
        assert done.returncode == 1
        assert "cannot be read as overrides" in done.stderr.replace("\n", " ")
