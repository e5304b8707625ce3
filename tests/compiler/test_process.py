"""Processes: every way in which a compiler can end is told apart, and nothing is left behind."""

import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from nestor.compiler import process
from nestor.compiler.process import Ending, Limits, run
from nestor.compiler.toolchain import Toolchain

# The front end's own switch for its tests: clang crashes for real.
CRASH = "#pragma clang __debug crash\n"


def test_success_has_cpu_time(toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text("int f(void) { return 1; }")
    done = run([toolchain.clang, "-c", source, "-o", tmp_path / "x.o"])
    assert done.ok
    assert done.cpu_seconds > 0
    assert done.peak_mib > 1


def test_error_is_told_with_its_message(toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text("int f(void) { return y; }")
    done = run([toolchain.clang, "-c", source, "-o", tmp_path / "x.o"])
    assert done.ending is Ending.FAILED
    assert "undeclared identifier 'y'" in done.reason


def test_crash_of_the_real_compiler(toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text(CRASH)
    crash = ["-fno-crash-diagnostics", "-c", str(source), "-o", str(tmp_path / "x.o")]
    assert run([toolchain.clang, *crash]).ending is Ending.CRASHED


def test_timeout_kills_the_whole_session(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pid_file}; wait"
    start = time.monotonic()
    done = run(["/bin/sh", "-c", script], Limits(seconds=0.5))
    assert done.ending is Ending.TIMEOUT
    assert time.monotonic() - start < 10
    child = int(pid_file.read_text())
    assert _gone(child), "the process that the command started still runs"


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # waits for init to reap it
            return True
        time.sleep(0.05)
    return False


def test_memory_limit(toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text("int f(void) { return 1; }")
    done = run([toolchain.clang, "-c", source, "-o", tmp_path / "x.o"], Limits(memory_mib=16))
    assert not done.ok


def test_a_lower_limit_of_the_users_own_stays() -> None:
    """As under ulimit -v and -t: without rights it could not be raised, and with them must not."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (5, 7))

    with subprocess.Popen(["sleep", "60"], preexec_fn=limited) as sleeping:
        process.restrict(sleeping.pid, Limits(seconds=60, memory_mib=4096))
        assert resource.prlimit(sleeping.pid, resource.RLIMIT_AS) == (1 << 30, 1 << 30)
        assert resource.prlimit(sleeping.pid, resource.RLIMIT_CPU) == (5, 5)
        process.restrict(sleeping.pid, Limits(seconds=2, memory_mib=512))
        assert resource.prlimit(sleeping.pid, resource.RLIMIT_AS) == (512 << 20, 512 << 20)
        assert resource.prlimit(sleeping.pid, resource.RLIMIT_CPU) == (3, 3)
        sleeping.kill()


def test_killed_worker_is_a_crash(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    result = []

    def work() -> None:
        result.append(run(["/bin/sh", "-c", f"echo $$ > {pid_file}; sleep 60"]))

    thread = threading.Thread(target=work)
    thread.start()
    while not pid_file.exists() or not pid_file.read_text().strip():
        time.sleep(0.01)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    thread.join(timeout=10)
    assert result[0].ending is Ending.CRASHED
    assert result[0].returncode == -signal.SIGKILL


def test_cancelled() -> None:
    event = threading.Event()
    threading.Timer(0.3, event.set).start()
    start = time.monotonic()
    assert run(["/bin/sleep", "60"], cancelled=event).ending is Ending.CANCELLED
    assert time.monotonic() - start < 10


def test_missing_command() -> None:
    done = run(["/no/such/compiler"])
    assert done.ending is Ending.NOT_STARTED
    assert "No such file" in done.reason


def test_no_zombies() -> None:
    run(["/bin/true"])
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "stat="],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Z" not in children.stdout


@pytest.mark.parametrize("closed", [True, False])
def test_a_program_that_is_still_being_written_is_waited_for(
    closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was forked while it was written holds it open until its own exec."""
    monkeypatch.setattr(process, "_BUSY_TRIES", 500 if closed else 3)
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    with program.open("ab") as writer:
        later = threading.Timer(0.2, writer.close if closed else lambda: None)
        later.start()
        outcome = run([program])
        later.join()
    if closed:
        assert outcome.ok
    else:
        assert outcome.ending is Ending.NOT_STARTED
        assert "Text file busy" in outcome.reason
