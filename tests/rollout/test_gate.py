"""The identity gate: it holds, its result is kept, and what changes objects is refused."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import run
from nestor.compiler.toolchain import ToolchainError
from nestor.policy.names import NamedPolicy, named_policy
from nestor.problem.identity import Circumstances, Command, Way
from nestor.problems.inlining_size.builtins import BUILTINS
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.problems.inlining_size.problem import PROBLEM, InliningSize
from nestor.rollout import gate
from nestor.rollout.cache import policy_path
from nestor.rollout.records import gate_record, has_passed, read_gate


def test_the_gate_holds_and_is_kept(plugin: Plugin) -> None:
    result = gate.check(PROBLEM, plugin)
    assert result.identical
    assert result.checked >= 16
    assert read_gate(plugin, PROBLEM.name) == (result.checked, ())
    assert has_passed(plugin, PROBLEM.name)
    assert gate.require(PROBLEM, plugin) is plugin


class Wrong(InliningSize):
    """A problem whose 'default' is another policy."""

    def ways(self, plugin: Plugin, policy: NamedPolicy, folder: Path) -> Sequence[Way]:
        never = policy_path(named_policy("never", BUILTINS))

        def compile_once(command: Command, out: Path, use: Circumstances) -> None:
            assert run([*command, *plugin_flags(plugin, never), "-o", out], use.limits).ok

        right = super().ways(plugin, policy, folder)
        return [Way(w.name, compile_once) if w.name == "default" else w for w in right]


def test_the_gate_refuses_what_changes_objects(plugin: Plugin, tmp_path: Path) -> None:
    copy = Plugin(plugin.toolchain, tmp_path / "nestor.plugin")
    copy.path.write_bytes(plugin.path.read_bytes())
    wrong = Wrong(**{field.name: getattr(PROBLEM, field.name) for field in fields(PROBLEM)})
    result = gate.check(wrong, copy)
    assert result.checked >= 16
    assert result.differing
    assert all("(default)" in name for name in result.differing)
    with pytest.raises(ToolchainError, match="refused"):
        gate.require(wrong, copy)
    assert not gate_record(copy, wrong.name).exists()
    assert not has_passed(copy, wrong.name)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"checked": 16}', '{"checked": 0, "differing": []}']
)
def test_a_damaged_record_is_no_pass(plugin: Plugin, tmp_path: Path, text: str) -> None:
    copy = Plugin(plugin.toolchain, tmp_path / "nestor.plugin")
    gate_record(copy, "inlining-size").write_text(text)
    assert not has_passed(copy, "inlining-size")
