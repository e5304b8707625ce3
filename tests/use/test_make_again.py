"""``nestor make`` builds again without Python while that is the same, and never when it is not."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from nestor.compiler.cache import cache_place
from tests.use.conftest import by_python, save_policy
from tests.use.making import BUILD, MAIN, digests, make, times

ASKED: Final = 77
"""The exit status where Python would have been started."""
IGNORED: Final = ("sed", "-n", "s/SigIgn:\\s*//p", "/proc/self/status")
"""Prints which signals it ignores."""
SETTLED: Final = 2.5
"""Seconds until the time of a file that was just written tells its next change for certain."""
NOTHING: Final = ("true",)


@pytest.fixture
def command(command: Path) -> Path:
    """Return the command ``nestor``, whose Python ends with :data:`ASKED` once it is denied."""
    path = by_python(command)
    first, rest = path.read_text().split("\n", 1)
    denied = f"import os, sys\nos.path.exists({str(_denied(command))!r}) and sys.exit({ASKED})\n"
    path.write_text(f"{first}\n{denied}{rest}")
    return command


@pytest.fixture
def own_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "ccache clang-22")
    monkeypatch.setenv("CXX", "g++")


@pytest.fixture
def built(command: Path, project: Path) -> Path:
    """Return a project that was built, after which Python is denied."""
    assert make(command, BUILD, project).returncode == 0
    time.sleep(SETTLED)
    assert make(command, BUILD, project).returncode == 0
    deny_python(command)
    assert make(command, NOTHING, project).returncode == 0
    return project


def deny_python(command: Path) -> None:
    _denied(command).touch()


def _denied(command: Path) -> Path:
    return command.with_name("python-is-denied")


def test_an_edit_is_built(command: Path, built: Path) -> None:
    before, stamps = digests(built), times(built)
    (built / "app.c").write_text(MAIN + "// edited\n")
    assert make(command, BUILD, built).returncode == 0
    assert times(built)["app.o"] != stamps["app.o"]
    assert digests(built) == before
    assert list((built / ".nestor" / "compiles").iterdir())


def test_the_exit_status_and_the_signals_are_the_command_s(command: Path, built: Path) -> None:
    assert make(command, ["sh", "-c", "exit 7"], built).returncode == 7
    ignored = make(command, IGNORED, built).stdout
    assert not int(ignored, 16) & 1 << signal.SIGPIPE - 1
    assert make(command, ["sh", "-c", "kill -TERM $$"], built).returncode == -signal.SIGTERM


def test_quiet_changes_nothing(command: Path, built: Path) -> None:
    for words in (("-q", "make"), ("--quiet", "make"), ("make", "-q")):
        line = [str(command), *words, "--", "echo", "-q", "a  b"]
        done = subprocess.run(line, cwd=built, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "-q a  b\n"), words


@pytest.mark.usefixtures("own_compilers")  # before the build
def test_the_environment_is_the_user_s_with_the_compilers(
    command: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("folder", "cache", "word", "record", "number", "a.b", "BASH_FUNC_stat%%"):
        monkeypatch.setenv(name, "() { echo the user's; }")
    monkeypatch.setenv("BASH_ENV", str(built / "Makefile"))
    place = built / ".nestor"
    expected = os.environ | {
        "CC": f"ccache {place}/bin/clang",
        "CXX": f"{place}/bin/clang++",
        "NESTOR_PROGRAM": str(place),
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "PWD": str(built),
    }
    shown = make(command, ["env", "-0"], built).stdout
    found = dict(line.split("=", 1) for line in shown.rstrip("\0").split("\0"))
    own = {"_", "OLDPWD", "SHLVL", "PS1"}  # of a shell
    assert {n: v for n, v in found.items() if n not in own} == {
        n: v for n, v in expected.items() if n not in own
    }


CHANGES: Final[Mapping[str, Callable[[Path], object]]] = {
    "another summary": lambda place: (place / "summary.txt").write_text("nestor-program 1\n"),
    "no summary": lambda place: (place / "summary.txt").unlink(),
    "modules are left": lambda place: (place / "left.txt").touch(),
    "objects of a first build": lambda place: (place / "unfinished").touch(),
    "another compiler": lambda place: (place / "bin" / "clang").write_text("#!/bin/sh\n"),
    "a compiler of the same size and time": lambda place: _rewritten(place / "bin" / "clang"),
    "no objects": lambda place: shutil.rmtree(place / "objects"),
}


def _rewritten(path: Path) -> None:
    status = path.stat()
    path.write_text("#" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", CHANGES)
def test_python_looks_at_what_has_changed(command: Path, built: Path, change: str) -> None:
    CHANGES[change](built / ".nestor")
    assert make(command, NOTHING, built).returncode == ASKED


def test_python_reads_other_words(command: Path, built: Path) -> None:
    for options in (("--renew",), ("--json",), ("--link", "icf"), ("--jobs", "1")):
        assert make(command, NOTHING, built, *options).returncode == ASKED, options


def test_python_looks_into_another_environment(command: Path, built: Path, tmp_path: Path) -> None:
    path = f"{built}/bin:{os.environ['PATH']}"
    names = ("NESTOR_LLVM", "NESTOR_PROGRAM", "PYTHONPATH", "HOME", "CC", "CXX")
    changes = {"PATH": path, "NESTOR_CACHE": str(tmp_path)} | dict.fromkeys(names, str(built))
    for name, value in changes.items():
        assert make(command, NOTHING, built, environment={name: value}).returncode == ASKED, name


def test_python_says_that_there_is_no_command(command: Path, built: Path) -> None:
    for words in (["no-such-command"], ["./app.c"], ["./.nestor"], ["if"], ["-j8"], [""], []):
        assert make(command, words, built).returncode == ASKED, words


def test_a_cache_whose_folder_is_relative_is_python_s(command: Path, built: Path) -> None:
    """A script that a source tree brings along is not run."""
    script = f"builds{built}/again.sh"
    for name, place in (("HOME", "h/.cache/nestor"), ("NESTOR_CACHE", "h")):
        brought = built / place / script
        brought.parent.mkdir(parents=True, exist_ok=True)
        brought.write_text("exit 0\n")
        given = {"NESTOR_CACHE": "", "XDG_CACHE_HOME": "x", name: "h"}
        assert make(command, NOTHING, built, environment=given).returncode == ASKED, name


def test_a_policy_of_one_s_own(command: Path, project: Path) -> None:
    policy = project / "p.safetensors"
    save_policy(policy, inline=False)
    time.sleep(SETTLED)
    for _ in range(2):
        assert make(command, BUILD, project, "--policy", "p.safetensors").returncode == 0
    deny_python(command)
    assert make(command, NOTHING, project, "--policy", "p.safetensors").returncode == 0
    assert make(command, NOTHING, project).returncode == ASKED
    save_policy(policy, inline=True)
    assert make(command, NOTHING, project, "--policy", "p.safetensors").returncode == ASKED


def test_what_was_cut_short_is_made_anew(command: Path, built: Path) -> None:
    script = Path(f"{cache_place()}/builds{built}/again.sh")
    whole = script.read_text()
    for length in (0, len(whole) // 2, len(whole) - 2):
        script.write_text(whole[:length])
        assert make(command, NOTHING, built).returncode == ASKED
    script.write_text(whole)
    assert make(command, NOTHING, built).returncode == 0


def test_another_nestor_looks_for_itself(command: Path, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-nestor"
    shutil.copytree(command.parent, other)
    assert make(other / "nestor", NOTHING, built).returncode == ASKED
    link = tmp_path / "link"
    link.symlink_to(command)  # of the launcher alone
    assert make(link, NOTHING, built).returncode == 0
    assert subprocess.run([link, "flags"], check=False).returncode == ASKED


def test_the_command_nestor_was_installed_anew(command: Path, built: Path) -> None:
    path = by_python(command)
    Path(shutil.copy(path, path.with_name("new"))).replace(path)
    assert make(command, NOTHING, built).returncode == ASKED


def test_a_policy_that_is_written_during_a_build(command: Path, project: Path) -> None:
    for name in ("p", "q"):
        save_policy(project / f"{name}.safetensors", inline=name == "p")
    time.sleep(SETTLED)
    options = ("--policy", "p.safetensors")
    line = f"make '{BUILD[1]}' && cp q.safetensors p.safetensors && sleep {SETTLED}"
    assert make(command, ("sh", "-c", line), project, *options).returncode == 0
    deny_python(command)
    assert make(command, NOTHING, project, *options).returncode == ASKED


def test_a_link_to_another_folder(command: Path, built: Path) -> None:
    link = built.with_name("link")
    link.symlink_to(built)
    line = f"cd {link} && {command} make -- true"
    for expected in (ASKED, 0, 0):  # under the name of the link nothing was built
        _denied(command).unlink(missing_ok=True)
        if expected != ASKED:
            assert subprocess.run(["bash", "-c", line], check=False).returncode == 0
        deny_python(command)
        assert subprocess.run(["bash", "-c", line], check=False).returncode == expected
    shutil.copytree(built, built.with_name("other"))
    link.unlink()
    link.symlink_to(built.with_name("other"))
    assert subprocess.run(["bash", "-c", line], check=False).returncode == ASKED


def test_another_folder_of_the_same_name(command: Path, built: Path) -> None:
    built.rename(built.with_name("former"))
    built.mkdir()
    assert make(command, NOTHING, built).returncode == ASKED
    assert make(command, NOTHING, built.with_name("former")).returncode == ASKED


@pytest.mark.parametrize("name", ["a b", "quote'", "dollar$x", "größe", "new\nline"])
def test_folders_of_any_name(command: Path, project: Path, name: str) -> None:
    place = project.rename(project.with_name(name))
    for wait in (SETTLED, 0):
        assert make(command, BUILD, place).returncode == 0
        time.sleep(wait)
    deny_python(command)
    shown = make(command, ["sh", "-c", 'echo "$NESTOR_PROGRAM"'], place)
    assert (shown.returncode, shown.stdout) == (0, f"{place}/.nestor\n")


def test_a_first_build_that_took_a_while_is_enough(command: Path, project: Path) -> None:
    slow = ("sh", "-c", f"{' '.join([BUILD[0], repr(BUILD[1])])} && sleep {SETTLED}")
    assert make(command, slow, project).returncode == 0
    deny_python(command)
    assert make(command, NOTHING, project).returncode == 0
