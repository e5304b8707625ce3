"""Compilers that die or stall, and what environments leave behind."""

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from nestor.compiler.process import run
from nestor.environment import CompileEnvironment
from nestor.temporary import PREFIX
from tests.environment.episodes import inlining, play


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.glob(f"{PREFIX}*/*")]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of this test alone."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    run(["true"])  # what a process starts and opens once is there from now on
    return folder


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def compiler_of(env: CompileEnvironment) -> int:
    assert env._channel is not None
    return env._channel._process.pid


def test_a_compiler_that_dies_truncates_the_episode(env: CompileEnvironment) -> None:
    env.reset()
    os.kill(compiler_of(env), signal.SIGKILL)
    observation, reward, terminated, truncated, info = env.step(1)
    assert observation in env.observation_space
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "status -9" in info["failure"]
    assert "loadable" not in info
    assert play(env)["reward"] == 0.0  # the next episode is not touched


def test_a_compiler_that_falls_silent_truncates_the_episode() -> None:
    with contextlib.closing(inlining(timeout=2.0)) as env:
        env.reset()
        os.kill(compiler_of(env), signal.SIGSTOP)
        before = time.monotonic()
        *_, truncated, info = env.step(1)
        assert truncated
        assert "in time" in info["failure"]
        assert time.monotonic() - before < 10


def test_the_time_of_the_agent_does_not_count() -> None:
    with contextlib.closing(inlining(timeout=2.0)) as env:
        env.reset()
        time.sleep(2.2)
        assert "failure" not in env.step(1)[-1]


def test_close_leaves_nothing(scratch: Path) -> None:
    env = inlining()
    before, processes = descriptors(), children()
    for _ in range(3):
        env.reset()
        env.step(1)
    assert is_running(compiler_of(env))
    assert len(left_behind(scratch)) == 2  # of the last episode only
    env.close()
    env.close()
    assert (descriptors(), children(), left_behind(scratch)) == (before, processes, [])
    play(env)  # an environment may be used again
    assert (descriptors(), children(), left_behind(scratch)) == (before, processes, [])


def test_a_forgotten_environment_leaves_nothing(scratch: Path) -> None:
    env = inlining()
    processes = children()
    env.reset()
    assert children() != processes
    del env
    gc.collect()
    assert (children(), left_behind(scratch)) == (processes, [])


def test_a_fork_does_not_end_the_compiler(env: CompileEnvironment) -> None:
    env.reset()
    child = multiprocessing.get_context("fork").Process(target=env._finalizer)
    child.start()
    child.join(30)
    assert is_running(compiler_of(env))
    assert env.step(1)[2:4] == (False, False)


def test_a_killed_agent_leaves_no_compiler_for_ever(tmp_path: Path) -> None:
    # LLVM's channel reads end-of-file for ever, at full speed; the kernel has to end it.
    code = (
        "import time\n"
        "from nestor.environment import make\n"
        "env = make('inlining-size', timeout=2.0)\n"
        "env.reset()\n"
        "print(env._channel._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as agent:
        assert agent.stdout is not None
        compiler = int(agent.stdout.readline())
        agent.kill()
    end = time.monotonic() + 40
    while is_running(compiler) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_running(compiler)
