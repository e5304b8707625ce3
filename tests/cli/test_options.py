"""What all commands share: the help of their options, ``--quiet``, and the end by Ctrl-C."""

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from nestor.cli import remarks
from nestor.cli.commands import COMMANDS, load
from nestor.cli.options import parse, parser
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from tests.command import nestor


@dataclass(frozen=True)
class Example:
    """Do nothing,
    but with options.

    Examples:
        nestor example --no-on
        nestor example --off
    """

    on: bool = True
    """Do what is done."""
    off: bool = False
    """Do more
    than that."""
    none: int | None = None
    """Any number (default: the best)."""
    some: tuple[str, ...] = ()
    """Some."""


def shown(kind: type, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return a command's help without its box."""
    with pytest.raises(SystemExit) as ended:
        parse(kind, name, ["--help"])
    assert ended.value.code == 0
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_says_the_opposite_of_what_it_does(name: str) -> None:
    for action in parser(load(COMMANDS[name]), name)._actions:
        first = action.option_strings[:1]
        if first and re.match(r"--([\w-]+\.)*no-", first[0]):
            pytest.fail(f"'nestor {name}' shows {first[0]} alone, with the help of its opposite")
        text = action.help or ""
        assert not re.search(r"\(default: (True|False|None)?\)", text), f"nestor {name}: {text}"


def test_a_switch_that_is_on_is_shown_as_a_pair(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(Example, "example", capsys)
    assert "--on, --no-on Do what is done. (default: yes)" in text
    assert "--off Do more than that. --none INT Any number (default: the best). --some" in text
    assert "Do nothing, but with options. Examples: nestor example --no-on nestor" in text


def test_options_still_mean_what_they_meant() -> None:
    assert parse(Example, "example", []) == Example()
    assert parse(Example, "example", ["--no-on", "--off"]) == Example(on=False, off=True)
    assert parse(Example, "example", ["--on", "--none", "3", "--some", "a", "b"]) == Example(
        none=3, some=("a", "b")
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--some", "a", "--some", "b"],
        ["--some=a", "--off", "--some=b"],
        ["--some", "--off", "--some", "a", "b"],
        ["--some", "a", "-q", "--some", "b"],
    ],
)
def test_an_option_with_several_values_may_be_repeated(words: list[str]) -> None:
    try:
        assert parse(Example, "example", words) == Example(off="--off" in words, some=("a", "b"))
    finally:
        remarks.silence(False)


def test_of_an_option_with_one_value_the_last_counts() -> None:
    assert parse(Example, "example", ["--none", "1", "--none=2"]) == Example(none=2)


def test_a_level_that_nobody_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(load(COMMANDS["corpus capture"]), "corpus capture", ["--level", "-O9"])
    assert "invalid choice '-O9' for argument '--level'" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.parametrize(
    ("name", "line", "why"),
    [
        ("corpus sample", "--seed 1 --count -1", "--count is 0 or more, not -1."),
        ("events", "x --top -2", "--top is 0 or more, not -2."),
        ("evaluate", "--corpus x --policy shipped --jobs 0", "--jobs is 1 or more, not 0."),
        ("sizes", "x --out y --modules 0", "--modules is 1 or more, not 0."),
        ("sizes", "x --out y --fit.leaves -3", "--fit.leaves is 0 or more, not -3."),
        ("train", "inlining-size --corpus x --out y --seed -1", "--seed is 0 or more, not -1."),
        ("train", "inlining-size --corpus x --out y --bc.steps -1", "--bc.steps is 0 or more"),
        ("problem check", "x --corpus y --units 0", "--units is 1 or more, not 0."),
        ("evaluate", "--corpus x --policy y --timeout 0", "--timeout is above 0, not 0.0."),
        ("evaluate", "--corpus x --policy y --timeout nan", "--timeout is a finite number, not"),
        ("evaluate", "--corpus x --policy y --timeout 1e30", "--timeout is 10,000,000 or less,"),
        ("evaluate", "--corpus x --policy y --memory 0", "--memory is 1 or more, not 0."),
        ("evaluate", "--corpus x --policy y --least-bytes inf", "--least-bytes is a finite number"),
        ("corpus fetch", "tiny x --minutes inf", "--minutes is a finite number, not inf."),
        ("corpus fetch", "tiny x --gigabytes -1", "--gigabytes is above 0, not -1.0."),
        ("events", "x --seconds -1", "--seconds is above 0, not -1.0."),
        ("size-check", "--base a --head b --limit nan", "--limit is a finite number, not nan."),
        ("costmodel train", "--blocks x --out y --minutes 0", "--minutes is above 0, not 0.0."),
        ("train", "inlining-size --corpus x --out y --bc.learning-rate 0", "--bc.learning-rate is"),
        ("train", "inlining-size --corpus x --out y --bc.hidden 8 -1", "--bc.hidden is 0 or more"),
        ("train", "x --corpus x --out y --profile.take 0.5 nan", "--profile.take is a finite"),
        ("train", "x --corpus x --out y --budget.cpu-minutes inf", "A budget must be above 0, and"),
    ],
)
def test_a_number_that_cannot_be_is_refused(name: str, line: str, why: str) -> None:
    with pytest.raises(NestorError, match=re.escape(why)):
        parse(load(COMMANDS[name]), name, line.split())


def test_a_switch_is_no_number() -> None:
    assert parse(load(COMMANDS["corpus info"]), "corpus info", ["x"]).modules is False


_FOLDERS = {"bisect", "corpus capture", "costmodel record-trace", "release", "train", "tune"}
_FOLDERS |= {"workload measure"}
"""Commands whose --out is a folder."""


def line(name: str, option: str, value: str) -> list[str]:
    """Return words for a command in which all that it requires is ``x``, but ``option`` a value."""
    actions = parser(load(COMMANDS[name]), name)._actions
    places = [action.metavar for action in actions if not action.option_strings]
    words = [value if option == place else "x" for place in places]
    for action in actions:
        if action.required and action.option_strings and option not in action.option_strings:
            words += [action.option_strings[0], next(iter(action.choices or ["x"]))]
    return words if option in places else [*words, option, value]


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - _FOLDERS))
def test_a_file_for_the_result_is_refused_before_the_work(name: str, tmp_path: Path) -> None:
    kind = load(COMMANDS[name])
    actions = parser(kind, name)._actions
    options = {option for action in actions for option in action.option_strings}
    written = {"--out", "--markdown", "--csv", "--page", "--resolved", "--object"}
    for option in written & options:
        with pytest.raises(NestorError, match="is a folder: name a file to write"):
            parse(kind, name, line(name, option, str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *((name, "--out") for name in sorted(_FOLDERS)),
        ("corpus codegen", "OUT"),
        ("corpus export", "OUT"),
        ("corpus fetch", "--logs"),
        ("corpus import", "DIRECTORY"),
        ("corpus profile", "OUT"),
    ],
)
def test_a_folder_for_the_result_is_refused_before_the_work(
    name: str, option: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for place, why in (("file", "it is a file; name a folder"), ("file/new", "is a file; name")):
        with pytest.raises(NestorError, match=why):
            parse(load(COMMANDS[name]), name, line(name, option, str(tmp_path / place)))
    parse(load(COMMANDS[name]), name, line(name, option, str(tmp_path / "new")))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "words",
    [
        ("corpus", "fetch", "tiny", "file"),
        ("corpus", "fetch", "--package", "lzip", "file"),
        ("corpus", "sample", "--seed", "1", "--index", "file"),
        ("flags", "shipped", "--install", "file"),
        ("make", "--summary", "file", "--", "false"),
    ],
)
def test_other_folders_are_refused_before_the_work(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = nestor(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("file cannot be written: it is a file; name a folder.\n"), (
        done.stderr
    )
    assert done.stderr.count("\n") == 1


_EVALUATED = "--policy default --corpus x --program y --split test"
_IDLE = (
    ("log", "x.log --policy shipped", "--policy has no effect with the log of a compile"),
    ("log", "x.log --corpus x", "--corpus has no effect with the log"),
    ("log", "x.log --unit x", "--unit has no effect with the log"),
    ("overrides check", "FILE --logs x --policy shipped", "--policy has no effect with --logs"),
    ("overrides check", "FILE --logs x --lto full", "--lto has no effect with --logs"),
    ("evaluate", _EVALUATED, "--split has no effect with --program"),
    ("workload measure", _EVALUATED, "--split has no effect with --program"),
    ("workload time", _EVALUATED, "--split has no effect with --program"),
    ("workload calls", "--corpus x --program y --split test", "--split has no effect with"),
    ("explain", "a.c:1 --compile-commands x --program y", "--program has no effect without"),
    ("compare", "x --split test", "--split has no effect without --corpus"),
    ("compare", "x --tables y", "--tables has no effect without --page"),
    ("corpus fetch", "tiny x --minutes 3", "--minutes has no effect without --package"),
    ("corpus fetch", "tiny x --logs y", "--logs has no effect without --package"),
    ("corpus capture", "--out x --jobs 4 -- make", "--jobs has no effect without --compile-"),
    ("corpus capture", "--out x --level -O2", "--level has no effect where nothing is captured"),
    ("tune", "a --corpus x --out y --trials 9", "--trials has no effect for inlining-size"),
    (
        "tune",
        "a --corpus x --out y --problem regalloc-eviction --compiles 9",
        "--compiles has no effect for regalloc-eviction",
    ),
    (
        "train",
        "inlining-size --corpus x --out y --learner bc --ppo.start.explore 0.5",
        "--ppo.start.explore has no effect with the learner bc",
    ),
    ("events", "x --callgrind y --l1-kib 64", "--l1-kib has no effect with --callgrind or --perf"),
    ("events", "x --perf y --seconds 9", "--seconds has no effect with --callgrind or --perf"),
    ("blocks measure", "--self-test --limit 9", "--limit has no effect with --self-test"),
    ("blocks measure", "--out x --sample 9", "--sample has no effect without --self-test"),
    ("blocks measure", "--self-test --llvm x", "--llvm has no effect with the back end rdtsc"),
    ("costmodel train", "--out x --minutes 9", "--minutes has no effect with the kind own"),
    ("costmodel train", "--out x --split none --test 0.1", "--test has no effect with --split"),
    ("schedule tune", "x --out y --search tpe --policy z", "--policy has no effect with the"),
    ("release", "shipped --as mlir --out x --name y", "--name has no effect with --as mlir"),
    ("size-check", "--base x --head y --policy shipped", "--policy has no effect with two builds"),
)


@pytest.mark.parametrize(("name", "words", "why"), _IDLE)
def test_an_option_without_effect_is_refused(
    name: str, words: str, why: str, tmp_path: Path
) -> None:
    overrides = tmp_path / "overrides.txt"
    overrides.write_text("nestor-overrides 1\n")
    given = words.replace("FILE", str(overrides)).split()
    with pytest.raises(NestorError, match=f"^{re.escape(why)}.*: leave it out"):
        parse(load(COMMANDS[name]), name, given).run()


@pytest.mark.parametrize("words", [["--quiet"], ["-q"]])
def test_every_command_is_quiet_on_request(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        remarks.remark("first")
        assert parse(Example, "example", words) == Example()
        remarks.remark("second")
    finally:
        remarks.silence(False)
    assert capsys.readouterr().err == "nestor: first\n"


_ON_STANDARD_ERROR = {
    "console.py": "progress, which --quiet leaves out, and the console itself",
    "corpus/cc.py": "an error: the command ran but was not captured",
    "corpus/fetch.py": "wrong usage",
    "doctor.py": "an error: no LLVM is ready",
    "ending.py": "errors",
    "main.py": "wrong usage",
    "policies/failures.py": "errors",
    "remarks.py": "remarks, which --quiet leaves out",
    "use/use.py": "wrong usage",
}


def test_only_errors_and_remarks_go_to_standard_error() -> None:
    home = Path(remarks.__file__).parent
    pattern = re.compile(r"stderr\.(print|write)\(")
    found = {
        path.relative_to(home).as_posix()
        for path in home.rglob("*.py")
        if pattern.search(path.read_text())
    }
    assert found <= set(_ON_STANDARD_ERROR), "call nestor.cli.remarks.remark"


def test_quiet_leaves_the_result_and_errors(tmp_path: Path) -> None:
    words = ("corpus", "sweep", str(tmp_path))
    for quiet in ((*words, "--quiet"), ("--quiet", *words)):
        failed = nestor(*quiet)
        assert failed.returncode == 1
        assert "nestor:" in failed.stderr


def test_quiet_shows_no_progress(small_corpus: Corpus) -> None:
    words = ("problem", "check", "inlining-size", "--corpus", str(small_corpus.root))
    usual, quiet = nestor(*words), nestor(*words, "--quiet")
    assert (usual.returncode, quiet.returncode) == (0, 0)
    assert usual.stdout == quiet.stdout
    assert quiet.stderr == ""


_INTERRUPTED = """
import os, signal, sys, time
from nestor.cli import main
class Waits:
    def run(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
import nestor.cli.options as options
options.parse = lambda *_: Waits()
main.entry()
"""


@pytest.mark.parametrize(
    ("words", "kept"),
    [(["tune", "x"], True), (["train", "x"], True), (["guard"], False), (["doctor"], False)],
)
def test_an_interrupt_promises_to_go_on_only_where_the_command_does(
    words: list[str], kept: bool
) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr.startswith("nestor: interrupted")
    assert ("goes on" in done.stderr) is kept
