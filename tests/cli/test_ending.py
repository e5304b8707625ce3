"""How commands end when the machine is against them: one sentence and a status, no traceback."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nestor.corpus.model import Corpus
from tests.conftest import module_named
from tests.cost.abilities import needs_valgrind


def run(
    *words: str, cache: Path | None = None, prefix: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run a command, with a cache of its own if one is named."""
    return subprocess.run(
        [*prefix, sys.executable, "-m", "nestor", *words],
        env=os.environ | ({} if cache is None else {"NESTOR_CACHE": str(cache)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def assert_one_sentence(done: "subprocess.CompletedProcess[str]", *parts: str) -> None:
    assert done.returncode == 1, done.stderr
    assert not done.stdout or done.stdout.startswith("--nestor-flags-failed=")
    assert "Errno" not in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("nestor: "), done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in last


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A file system that is mounted read-only."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount the file system that this test needs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


ELSEWHERE = "name another folder for the cache by NESTOR_CACHE."


def test_a_full_cache(full_disk: Path) -> None:
    done = run("flags", "shipped", cache=full_disk)
    assert_one_sentence(done, str(full_disk), ": no space left on device; make room", ELSEWHERE)


def test_a_read_only_cache(read_only: Path) -> None:
    done = run("flags", "shipped", cache=read_only)
    assert_one_sentence(done, str(read_only), ": read-only file system; ", ELSEWHERE)


def test_a_cache_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = run("flags", "shipped", cache=file)
    assert_one_sentence(done, str(file), ": not a directory; move away", ELSEWHERE)


def test_a_cache_of_another_user(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:  # root may do everything, unless it gives that up
        os.chown(folder, 65534, 65534)
        prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    else:
        folder.chmod(0)
    done = run("flags", "shipped", cache=folder, prefix=prefix)
    assert_one_sentence(done, str(folder), ": permission denied; change its", ELSEWHERE)


@pytest.mark.parametrize(
    "words",
    [
        ("flags", "shipped"),
        ("clang", "shipped", "--", "-c", "/dev/null"),
        pytest.param(("events", "/bin/true"), marks=needs_valgrind),
    ],
)
def test_a_cache_in_a_folder_that_takes_nothing(words: tuple[str, ...]) -> None:
    done = run(*words, prefix=("env", "-u", "NESTOR_CACHE", "XDG_CACHE_HOME=/proc"))
    assert_one_sentence(done, "/proc/nestor: no such file or directory; ", ELSEWHERE)


@pytest.mark.parametrize("home", ["/proc/nobody", "/sys/nobody"])
def test_a_home_that_cannot_be_made(home: str) -> None:
    unset = ("-u", "NESTOR_CACHE", "-u", "XDG_CACHE_HOME")
    done = run("flags", "shipped", prefix=("env", *unset, f"HOME={home}"))
    assert_one_sentence(done, f"{Path(home).parent}", ELSEWHERE)
    assert "Building" not in done.stderr, "nothing is built that cannot be kept"


def test_a_result_on_a_full_disk(small_corpus: Corpus, full_disk: Path) -> None:
    out = full_disk / "guard.txt"
    words = ("--corpus", str(small_corpus.root), "--policy", "never", "--mode", "gc")
    done = run("guard", *words, "--out", str(out))
    assert_one_sentence(done, f"{out}: no space left on device; make room there.")
    assert {path.name for path in full_disk.iterdir()} == {"ballast"}


def test_standard_output_on_a_full_disk() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nestor", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "nestor: A file cannot be written or read: no space left on device.\n"


@pytest.mark.parametrize("words", ["--help", "policy shipped", "policy shipped --json"])
def test_standard_output_that_nobody_reads(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "nestor", *words.split()],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (("evaluate", "--help"), "rich"),
        (("evaluate", "--help"), "numpy"),
        (("flags", "threshold:7"), "numpy"),
        (("train", "--help"), "nestor.learn"),
    ],
)
def test_an_interrupt_while_importing(words: tuple[str, ...], module: str, tmp_path: Path) -> None:
    """Interrupt as soon as the interpreter says that it has imported a part of ``module``."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "nestor", *words],
        env=os.environ | {"NESTOR_CACHE": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.rpartition("|")[2].strip().startswith(module):
            process.send_signal(signal.SIGINT)
            break
    output, rest = process.communicate(timeout=60)
    said = [line for line in rest.splitlines() if not line.startswith("import time:")]
    goes_on = "; the same command goes on from here" if words[0] == "train" else ""
    assert said == [f"nestor: interrupted{goes_on}"], lines[-3:]
    assert process.returncode == 130
    assert not output or output.startswith("--nestor-flags-failed=")


def test_an_interrupt_inside_a_string(tmp_path: Path) -> None:
    """The status stays 130 where the interpreter, started by -m, would end by the signal."""
    code = (
        "import os, signal, sys\n"
        "from nestor.cli.ending import unwound\n"
        "string = 'os.kill(os.getpid(), signal.SIGINT)'\n"
        "sys.exit(unwound(lambda: exec(string), resumes=False))\n"
    )
    (tmp_path / "interrupted.py").write_text(code)
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "nestor: interrupted\n")


def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """Where cleaning up takes long, and without a traceback."""
    code = (
        "import sys, time\n"
        "from nestor.cli.ending import unwound\n"
        "def work():\n"
        "    try:\n"
        "        print('working', flush=True)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        print('cleaning', flush=True)\n"
        "        time.sleep(60)\n"
        "sys.exit(unwound(work, resumes=False))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for expected in ("working\n", "cleaning\n"):
            assert process.stdout.readline() == expected
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_evaluate_fails_with_a_module(small_corpus: Corpus) -> None:
    """A program that cannot be built is the last thing said, and the status."""
    module = module_named(small_corpus, "two")
    small_corpus.bitcode(module).write_bytes(b"no bitcode")
    words = ("--corpus", str(small_corpus.root), "--policy", "default", "--split", "all")
    for options in ((), ("--json",)):
        done = run("evaluate", *words, *options)
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert last.startswith("failed two/two"), done.stderr
        assert "one" in done.stdout  # what could be compared is shown
    done = run("identity", str(small_corpus.root))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"failed {module.name}")


def test_one_run_at_a_time(small_corpus: Corpus, tmp_path: Path) -> None:
    """The second run in a folder is refused; the first ends as it would have."""
    out = tmp_path / "run"
    words = ["--corpus", str(small_corpus.root), "--out", str(out)]
    for command in (
        ["train", "inlining-size", "--learner", "bc"],
        ["tune", "one", "--compiles", "2"],
    ):
        first = subprocess.Popen(
            [sys.executable, "-m", "nestor", *command, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        end = time.monotonic() + 60
        while not (out / ".lock").exists() or not (out / ".lock").read_text().strip():
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)
        timer = threading.Timer(240, first.kill)
        timer.start()
        try:
            second = run(*command, *words)
        finally:
            os.kill(first.pid, signal.SIGCONT)
            _, errors = first.communicate()
            timer.cancel()
        assert_one_sentence(
            second,
            f"The process {first.pid} is at work in {out}: wait until it has ended, or take"
            " another --out.",
        )
        assert first.returncode == 0, errors
        assert run(*command, *words).returncode == 0
        out = out.with_name("tuned")
        words[-1] = str(out)
