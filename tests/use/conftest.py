"""A policy in ordinary builds: a ``nestor`` on PATH, as users have it."""

import sys
from pathlib import Path

import pytest

from benchmarks.build_ways import Policy
from nestor.compiler.plugin import Plugin
from nestor.policy import bundle
from nestor.problems.inlining_size import builtins
from tests.conftest import ROOT


def write_command(path: Path) -> Path:
    """Write the command ``nestor`` as pip writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from nestor.cli.start import entry\nentry()\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the command ``nestor``, which is first on PATH."""
    path = write_command(tmp_path / "bin" / "nestor")
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return path


@pytest.fixture
def never(plugin: Plugin, command: Path) -> Policy:
    """Return a policy that changes every object of the tests' sources."""
    return Policy("never", command, plugin.toolchain.clang)


def save_policy(path: Path, *, inline: bool) -> None:
    """Write a policy file that always gives one answer."""
    bundle.save(builtins.constant(inline=inline), path)
