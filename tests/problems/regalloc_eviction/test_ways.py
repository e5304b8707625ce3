"""The plugin and LLVM's own channel give one object under the same policy."""

from pathlib import Path

import pytest

from nestor.files import sha256_of
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.identity import Circumstances, Command
from nestor.rollout.gate import probe_folder
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import linear


@pytest.mark.parametrize("name", ["default", "first", "keep", "lowest-density"])
@pytest.mark.parametrize("probe", ["probe.c", "probe.cpp"])
def test_all_ways_agree(pool: LocalPool, tmp_path: Path, name: str, probe: str) -> None:
    policy = pool.problem.policy(name)
    ways = pool.problem.ways(pool.plugin, policy, tmp_path)
    command: Command = [pool.plugin.toolchain.clang, "-O2", "-c", probe_folder() / probe]
    digests, counts = [], []
    for number, way in enumerate(ways):
        out = tmp_path / f"{number}.o"
        count = way.compile(command, out, Circumstances())
        digests.append(sha256_of(out))
        counts += [count] if way.counts else []
    assert len(set(digests)) == 1
    assert counts[0] is not None and counts[0] >= 5
    expected = ["stock", "idle", "default", "logged"]
    if policy != DEFAULT:
        expected = ["release", "logged", "channel, Python"]
    assert [way.name for way in ways] == expected


def test_channel_serves_no_policy_that_reads_the_default(pool: LocalPool, tmp_path: Path) -> None:
    for feature in ("eviction_default", "liverange_size_of_default"):
        policy = NamedPolicy.of(linear(pool, {feature: 1.0}))
        ways = pool.problem.ways(pool.plugin, policy, tmp_path)
        assert [way.name for way in ways] == ["release", "logged"]
