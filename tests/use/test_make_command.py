"""The command of ``nestor make``: how it ends, what ends it, and how many compiles it asks for."""

import signal
import subprocess
import time
from pathlib import Path
from typing import get_args

import pytest

from nestor.cli.make import words
from nestor.cli.make.make import jobs_of
from nestor.corpus.relink import LinkMode
from tests.use.making import BUILD, digests, make, sources

WAITS = "echo $$ >pid; trap 'exit 3' TERM HUP; for i in $(seq 500); do sleep 0.05; done"
"""A build that says when it is at work, and does not end by itself for half a minute."""


def at_work(command: Path, project: Path) -> "subprocess.Popen[str]":
    """Start a build that waits, and return when it does."""
    line = [str(command), "make", "--", "sh", "-c", f"make -s app.o '{BUILD[1]}'; {WAITS}"]
    started = subprocess.Popen(line, cwd=project, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (project / "pid").is_file() or not (project / "pid").read_text().strip():
        assert time.monotonic() < end
        time.sleep(0.01)
    return started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_terminate_ends_the_command_too(
    number: signal.Signals, command: Path, project: Path
) -> None:
    expected = sources(project.parent / "other")
    make(command, BUILD, expected)
    started = at_work(command, project)
    started.send_signal(number)
    _, errors = started.communicate(timeout=30)
    assert started.returncode == 128 + number
    assert errors == "nestor: terminated\n"
    assert not Path("/proc", (project / "pid").read_text().strip()).exists()
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    assert digests(project) == digests(expected)


def test_what_is_ignored_is_not_passed_on(command: Path, project: Path) -> None:
    line = f"trap '' HUP; exec {command} make -- sh -c 'kill -HUP $PPID; exit 4'"
    done = subprocess.run(["sh", "-c", line], cwd=project, check=False)
    assert done.returncode == 4


@pytest.mark.parametrize("status", [126, 127])
def test_the_exit_status_is_the_commands(status: int, command: Path, project: Path) -> None:
    done = make(command, ["sh", "-c", f"exit {status}"], project)
    assert done.returncode == status
    assert f"the build ended with the exit status {status}" in done.stderr


def test_a_command_that_is_not_there_is_named(command: Path, project: Path) -> None:
    done = make(command, ["no-such-command"], project)
    assert done.returncode == 1
    assert done.stderr.endswith("nestor: There is no command 'no-such-command'.\n")


def test_two_at_once_are_told_of_the_option_that_there_is(command: Path, project: Path) -> None:
    started = at_work(command, project)
    done = make(command, BUILD, project)
    started.terminate()
    started.communicate(timeout=30)
    assert done.returncode == 1
    assert "wait until it has ended, or name another folder by --summary." in done.stderr


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("make -j8", 8),
        ("ninja -j 3", 3),
        ("make --jobs=4 all", 4),
        ("make --jobs 5", 5),
        ("cmake --build b --parallel 6", 6),
        ("cmake --build b --parallel=7", 7),
        ("make -j0", 1),
        ("sh -c : -j all -j2", 2),
        ("make -j", None),
        ("make -j all", None),
        ("make", None),
        ("cmake --parallel8", None),
    ],
)
def test_as_many_modules_at_a_time_as_the_command(line: str, number: int | None) -> None:
    own = words.split(["--", *line.split()])
    without = jobs_of(words.split(["--", "make"]))
    assert jobs_of(own) == (without if number is None else number)


def test_links_are_the_modes_of_a_link() -> None:
    """They stand there once more, since what reads the words imports next to nothing."""
    assert get_args(LinkMode) == words.LINKS
