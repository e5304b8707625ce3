"""What commands import before they do anything: the libraries that take long to import.

Times depend on the machine, imports do not; ``benchmarks/startup.py`` measures the times.
"""

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from nestor.policy.spec import PolicyError
from nestor.rollout.ready import stored_policy

LIBRARIES = frozenset(
    {
        "cma", "gymnasium", "iced_x86", "lief", "lightgbm", "numpy", "pyarrow", "safetensors",
        "scipy", "tensorboard", "torch", "xxhash",
    }
)  # fmt: skip
"""Whatever computes; none of these does a command need to explain itself."""
QUICK_LIBRARIES = frozenset({"numpy", "safetensors"})
"""What commands may take that know policies."""
TERMINAL = frozenset({"rich", "tyro", "typeguard", "asyncio"})
"""What reads options and draws tables."""
QUICK = frozenset({"inspect", "dataclasses", "subprocess", "tempfile"})
"""Parts of Python's library that take 5 ms and more; :mod:`nestor.cli.main` needs none."""

_REPORT = """
import sys
from nestor.cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as ended:
    status = ended.code
sys.stderr.write(" ".join({name.partition(".")[0] for name in sys.modules}))
sys.exit(status)
"""


def imported(*words: str) -> set[str]:
    """Return the packages that a command has imported when it ends."""
    command = [sys.executable, "-c", _REPORT, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["flags", "--help"]])
def test_help_takes_nothing(words: list[str]) -> None:
    assert not imported(*words) & (LIBRARIES | TERMINAL)


def test_the_list_of_commands_takes_nothing() -> None:
    assert not imported("--help") & QUICK


@pytest.mark.usefixtures("plugin")
def test_flags_take_no_library(tmp_path: Path) -> None:
    copy = tmp_path / "a policy.safetensors"
    packaged = resources.files("nestor") / "problems" / "inlining_size" / "data"
    copy.write_bytes((packaged / "distilled.safetensors").read_bytes())
    for policy in ("default", "shipped", str(copy)):
        imported("flags", policy)  # the first use checks the policy and runs the identity gate
        assert not imported("flags", policy) & (LIBRARIES | TERMINAL)
    assert not imported("flags", "shipped", "--lto") & (LIBRARIES | TERMINAL)


@pytest.mark.usefixtures("plugin")
def test_a_file_that_is_no_policy_is_refused_each_time(tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(b"no policy")
    for _ in range(2):
        with pytest.raises(AssertionError, match="Cannot use the policy"):
            imported("flags", str(path))


@pytest.mark.usefixtures("plugin")
def test_a_policy_that_was_damaged_in_the_cache_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path))
    path = stored_policy("shipped", ["inlining-size"]).place
    assert isinstance(path, Path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert stored_policy("shipped", ["inlining-size"]).place == path
    assert path.read_bytes() == whole
    with pytest.raises(PolicyError, match="no such file"):
        stored_policy("no such file", ["inlining-size"])
    with pytest.raises(PolicyError):
        stored_policy("with a\0.safetensors", ["inlining-size"])


@pytest.mark.parametrize("name", ["corpus capture", "corpus fetch", "corpus info", "doctor"])
def test_commands_explain_themselves_without_libraries(name: str) -> None:
    assert not imported(*name.split(), "--help") & LIBRARIES


def test_no_command_takes_a_slow_library_to_explain_itself() -> None:
    lines = [
        "import contextlib, sys",
        "from nestor.cli.commands import COMMANDS",
        "from nestor.cli.main import main",
        "for name in COMMANDS:",
        "    with contextlib.suppress(SystemExit):",
        "        main([*name.split(), '--help'])",
        f"    taken = set(sys.modules) & {LIBRARIES - QUICK_LIBRARIES}",
        "    assert not taken, (name, taken)",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_first_build_waits_for_no_reader_of_objects() -> None:
    """LIEF alone took as much CPU time as a sixth of a build of lua."""
    code = "import sys, nestor.cli.make.finish, nestor.compiler.objects; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lief" not in done.stdout.split()
