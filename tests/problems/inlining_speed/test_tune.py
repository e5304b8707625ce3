"""The default gives stock objects at -O2 and -O3; what a search is told of code and policies."""

import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.policy.spec import PolicyError
from nestor.problem.identity import Circumstances
from nestor.problem.registry import find_problem
from nestor.problems.inlining_speed.run_build import price_of_a_byte
from nestor.rollout.gate import probe_folder

PROBLEM = find_problem("inlining-speed")


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("probe", ["probe.c", "probe.cpp"])
def test_the_default_gives_stock_objects(
    plugin: Plugin, tmp_path: Path, level: str, probe: str
) -> None:
    command: list[str | Path] = [plugin.toolchain.clang, level, "-c", str(probe_folder() / probe)]
    objects = []
    for number, way in enumerate(PROBLEM.ways(plugin, PROBLEM.policy("default"), tmp_path)):
        out = tmp_path / f"{number}.o"
        way.compile(command, out, Circumstances())
        objects.append(out.read_bytes())
    assert len(objects) > 3
    assert set(objects) == {objects[0]}
    stock = tmp_path / "stock.o"
    subprocess.run([*command, "-o", stock], check=True, timeout=60)
    assert stock.read_bytes() == objects[0]


def test_a_policy_is_refused() -> None:
    with pytest.raises(PolicyError, match="has no policies yet"):
        PROBLEM.policy("shipped")


def test_builds_of_one_program_price_code_alike() -> None:
    assert price_of_a_byte(100_000_000, 100_000) == price_of_a_byte(97_000_000, 101_900)
    assert price_of_a_byte(100_000_000, 100_000) == 256.0
