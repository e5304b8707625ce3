"""Shell completions, asked as the shells ask them, and the manual page, rendered by groff."""

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nestor.cli.commands import COMMANDS, PASS_THROUGH
from nestor.cli.main import main
from nestor.learn.learners import LEARNERS

_ASK = """
source "$0"
function=$(complete -p nestor | sed 's/.*-F \\([^ ]*\\) nestor$/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"$function"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The completions for bash, as a user would install them."""
    path = tmp_path_factory.mktemp("completion") / "nestor"
    path.write_text(printed("--print-completion", "bash"))
    return path


def printed(*words: str) -> str:
    """Return what a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(words) == 0
    return out.getvalue()


def offered(script: Path, *words: str) -> set[str]:
    """Return what bash offers for the last of the words after ``nestor``."""
    command = ["bash", "--norc", "-c", _ASK, str(script), "nestor", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_commands_are_offered(script: Path) -> None:
    first = {name.partition(" ")[0] for name in COMMANDS | PASS_THROUGH}
    assert first <= offered(script, "")
    assert offered(script, "ev") == {"evaluate", "events"}
    assert offered(script, "--quiet", "ev") == {"evaluate", "events"}
    assert offered(script, "corpus", "") >= {"fetch", "capture", "info"}


def test_options_are_offered(script: Path) -> None:
    assert offered(script, "tune", "--sw") == {"--sweep"}
    assert offered(script, "tune", "--no-") == {"--no-sweep", "--no-summary"}
    assert offered(script, "corpus", "fetch", "--l") == {"--level", "--llvm", "--logs"}
    assert {"--overrides", "--summary", "--lto"} <= offered(script, "flags", "shipped", "--")
    assert "--quiet" in offered(script, "doctor", "--")


def test_names_are_offered_besides_files(script: Path) -> None:
    (script.parent / "mine.safetensors").touch()
    policies = offered(script, "evaluate", "--policy", "")
    assert {"default", "shipped", "distilled", "mine.safetensors"} <= policies
    of = ("lto", "os", "speed", "eviction", "priority")
    assert offered(script, "flags", "ship") == {"shipped", *(f"shipped-{each}" for each in of)}
    assert offered(script, "train", "reg") == {"regalloc-eviction", "regalloc-priority"}
    inlining = {"inlining-size", "inlining-size-os", "inlining-speed"}
    assert offered(script, "tune", "lua", "--problem", "inl") == inlining


def test_values_are_offered(script: Path) -> None:
    assert offered(script, "train", "inlining-size", "--learner", "") == set(LEARNERS)
    assert offered(script, "evaluate", "--lto", "") == {"full", "thin"}
    assert {"gc", "no-gc", "icf"} <= offered(script, "evaluate", "--mode", "")
    assert offered(script, "corpus", "fetch", "t") == {"tiny"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same_names(shell: str, tmp_path: Path) -> None:
    text = printed("--print-completion", shell)
    for name in ("evaluate", "shipped", "regalloc-eviction", "best-of", "no-sweep"):
        assert name in text
    program = shutil.which(shell)
    if program is not None:  # a syntax error would show here
        path = tmp_path / "nestor"
        path.write_text(text)
        subprocess.run([program, "-n", str(path)], check=True)


def test_wrong_usage_names_the_shells(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--print-completion"], ["--print-completion", "csh"], ["--print-man", "x"]):
        assert main(words) == 2
        assert "{bash,zsh,fish}" in capsys.readouterr().err


def test_the_manual_has_every_command_and_renders_without_a_warning() -> None:
    page = printed("--print-man")
    for name in COMMANDS | PASS_THROUGH:
        assert f".SS nestor {name}".replace("-", r"\-") in page
    command = ["groff", "-man", "-ww", "-Tutf8"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    text = re.sub(".\b", "", done.stdout.replace("\N{HYPHEN}", "-"))  # bold: typed twice
    assert "nestor train inlining-size --corpus corpus/bench --out runs/distil\n" in text
    assert "--no-sweep" in text
