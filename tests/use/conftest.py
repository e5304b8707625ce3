"""A policy in ordinary builds: a ``nestor`` on PATH, as users have it."""

from pathlib import Path
from typing import Final

import pytest

from benchmarks.build_ways import Policy, write_command
from nestor.compiler.plugin import Plugin
from nestor.policy import bundle
from nestor.problems.inlining_size import builtins
from tests.use.making import sources

PRESSURE: Final = """
__attribute__((noinline)) static int step(int v) { return v * 3 + 1; }
static int mix(int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) {
    int a = p[0] * n, b = p[1] + i, c = p[2] - n, d = p[3] * i, e = p[4] ^ n, f = p[5] | i;
    int g = p[6] + s, h = p[7] * s, j = p[8] - i, k = p[9] & n, l = p[10] + n, m = p[11] * n;
    int o = p[12] + i, q = p[13] - s, r = p[14] * i, t = p[15] ^ s, u = p[16] + n, v = p[17] | s;
    p[i & 15] = step(a + v);
    s += a * v + b * u - c * t + d * r - e * q + f * o + g * m - h * l + j * k;
    s ^= a * b + c * d - e * f + g * h - j * k + l * m - o * q + r * t - u * v;
  }
  return s;
}
int twice(int *p, int n) { return mix(p, n) + mix(p + 1, n + 1); }
int main(int argc, char **argv) { int p[32] = {argc}; (void)argv; return twice(p, argc) & 1; }
"""
"""More values at a time than registers, and calls to inline."""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the command ``nestor``, which is first on PATH."""
    path = write_command(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return path


def by_python(command: Path) -> Path:
    """Return what the command ``nestor`` starts for all that it does not do itself."""
    return command.with_name("nestor-python")


@pytest.fixture
def project(plugin: Plugin, command: Path, tmp_path: Path) -> Path:
    """Return the folder of a project that make builds in place."""
    del plugin, command
    return sources(tmp_path / "p")


@pytest.fixture
def never(plugin: Plugin, command: Path) -> Policy:
    """Return a policy that changes every object of the tests' sources."""
    return Policy("never", command, plugin.toolchain.clang)


@pytest.fixture
def keep(plugin: Plugin, command: Path) -> Policy:
    """Return policies about register allocation that change every object with pressure."""
    return Policy("keep heaviest", command, plugin.toolchain.clang)


def save_policy(path: Path, *, inline: bool) -> None:
    """Write a policy file that always gives one answer."""
    bundle.save(builtins.constant(inline=inline), path)
