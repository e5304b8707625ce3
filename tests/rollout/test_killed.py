"""A run that is killed: its compilers end with it, and its temporary folders do not stay."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.temporary import PREFIX
from tests.conftest import SOURCE, make_corpus, module_named
from tests.rollout.test_failures import ENDLESS

PATIENCE = 60.0


@pytest.fixture
def endless(tmp_path: Path, toolchain: Toolchain) -> Corpus:
    """A program that compiles at once and one that compiles for minutes."""
    sources = {"quick": SOURCE, "endless": SOURCE}
    corpus = make_corpus(tmp_path / "corpus", toolchain, sources)
    # Captured, it would have to be compiled to the end.
    bitcode = corpus.bitcode(module_named(corpus, "endless"))
    source = tmp_path / "endless.c"
    source.write_text(ENDLESS)
    flags = ["-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", str(source)]
    subprocess.run([toolchain.clang, *flags, "-o", bitcode], check=True)
    options = bitcode.with_suffix(".cmd")
    options.write_bytes(options.read_bytes().replace(b"-Oz", b"-O2"))
    return corpus


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def start(scratch: Path, *words: str, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    """Start a command whose temporary folders are in ``scratch``."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "nestor", *words],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(scratch: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the processes, and their words, that know of the folder by words or environment."""
    marker = os.fsencode(scratch)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            if marker in words or marker in (process / "environ").read_bytes():
                yield int(process.name), [os.fsdecode(word) for word in words.split(b"\0")]
        except OSError:
            continue


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: it did not come to that in {PATIENCE:.0f} s"
        time.sleep(0.05)


def compiles(scratch: Path) -> bool:
    return any(
        "-cc1" in words and any("endless" in w for w in words) for _, words in processes_of(scratch)
    )


def evaluate(scratch: Path, corpus: Corpus) -> "subprocess.Popen[str]":
    """Start an evaluation and wait until it is in the compile that does not end."""
    words = ("evaluate", "--corpus", str(corpus.root), "--policy", "always", "--split", "all")
    process = start(scratch, *words, "--jobs", "2")
    until(lambda: compiles(scratch) or process.poll() is not None, "compiling")
    assert process.poll() is None
    assert list(scratch.glob(f"{PREFIX}*/pool-*"))
    return process


def test_killed(scratch: Path, endless: Corpus) -> None:
    process = evaluate(scratch, endless)
    process.kill()
    process.communicate()
    until(lambda: not list(processes_of(scratch)), "no process left")
    until(lambda: not list(scratch.iterdir()), "no folder left")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_told_to_end(scratch: Path, endless: Corpus, signal_number: signal.Signals) -> None:
    process = evaluate(scratch, endless)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal_number
    assert "Traceback" not in errors
    said = "interrupted" if signal_number == signal.SIGINT else "terminated"
    assert errors.endswith(f"nestor: {said}\n")
    assert not list(scratch.iterdir())
    until(lambda: not list(processes_of(scratch)), "no process left")


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_what_a_build_has_started(scratch: Path, how: str) -> None:
    """Also what a build has put into the background, while a thread waits for the build."""
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from nestor.cli.ending import unwound\n"
        "from nestor.corpus.capture.build import run\n"
        "def work():\n"
        "    script = 'setsid sleep 1000 & sleep 1000 & touch started; wait'\n"
        "    folder = Path(sys.argv[1])\n"
        "    build = threading.Thread(target=run, args=(['sh', '-c', script], folder, {}))\n"
        "    build.start()\n"
        "    while build.is_alive():\n"
        "        build.join(0.5)\n"
        "    return 0\n"
        "sys.exit(unwound(work, resumes=False))\n"
    )
    work = scratch.parent / "work"
    work.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(work)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.DEVNULL,
    )
    until((work / "started").exists, "building")
    assert sum("sleep" in words for _, words in processes_of(scratch)) == 2
    getattr(process, how)()
    process.wait(PATIENCE)
    until(lambda: not list(processes_of(scratch)), "no process left")
    until(lambda: not list(scratch.iterdir()), "no folder left")


def test_killed_with_all_that_belongs_to_it(scratch: Path, endless: Corpus) -> None:
    """As when the machine goes down: the next run removes what nobody could."""
    process = evaluate(scratch, endless)
    # The one that would clean up is a child of the command and has no environment.
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for number in {process.pid, *map(int, children)}:
        os.kill(number, signal.SIGKILL)
    process.communicate()

    def nobody_lives() -> bool:
        living = [number for number, _ in processes_of(scratch)]
        for number in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        return not living

    until(nobody_lives, "no process left")  # also of those that were just being started
    assert list(scratch.iterdir())
    living = evaluate(scratch, endless)
    try:
        left = {path.name for path in scratch.iterdir()}
        assert all(name.startswith(f"{PREFIX}{living.pid}-") for name in left), left
        # A third one leaves alone what is in use.
        words = ("evaluate", "--corpus", str(endless.root), "--policy", "default", "--split", "all")
        start(scratch, *words, "--timeout", "0.5").communicate(timeout=PATIENCE)
        assert {path.name for path in scratch.iterdir()} == left
    finally:
        living.terminate()
        living.communicate(timeout=PATIENCE)
    assert not list(scratch.iterdir())


def test_a_hangup_that_is_ignored_stays_ignored(scratch: Path, endless: Corpus) -> None:
    words = ("evaluate", "--corpus", str(endless.root), "--policy", "always", "--split", "all")
    process = start(scratch, *words, prefix=("nohup",))
    try:
        until(lambda: compiles(scratch), "compiling")
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
