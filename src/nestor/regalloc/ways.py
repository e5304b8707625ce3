"""Ways to compile that must agree, for the identity gate.

For the default heuristics: the stock compiler, the plugin idle, following the default, and logging
while it does. For a policy: the plugin as a release uses it, and with the logs.
"""

from collections.abc import Callable
from pathlib import Path

from nestor.compiler.plugin import Plugin
from nestor.compiler.releases import REGISTER_ALLOCATION
from nestor.policy.names import NamedPolicy
from nestor.problem.identity import Way, way_by_flags
from nestor.problem.trajectory import Trajectory
from nestor.regalloc.plugin_flags import Decision, as_flags


def ways(
    plugin: Plugin,
    policy: NamedPolicy,
    folder: Path,
    decision: Decision,
    read_log: Callable[[Path], Trajectory],
) -> tuple[Way, ...]:
    """Return the ways; see :meth:`nestor.problem.problem.Problem.ways`.

    :raises ToolchainError: if this release of LLVM has no public allocator.
    """
    plugin.toolchain.require(REGISTER_ALLOCATION)
    file: Path | str = "default"
    if policy.policy is not None:
        file = folder / "policy.safetensors"
        file.write_bytes(policy.data)
    questions = folder / "questions"
    decides = [f"-nestor-{decision}={file}"]
    logs = [f"-nestor-{decision}-log={questions}", f"-nestor-allocation-log={folder / 'costs'}"]

    def logged() -> int:
        return len(read_log(questions))

    ours = (
        way_by_flags("release" if policy.policy else "default", as_flags(plugin, decides)),
        way_by_flags("logged", as_flags(plugin, [*decides, *logs]), logged),
    )
    if policy.policy is not None:
        return ours
    return (way_by_flags("stock", []), way_by_flags("idle", as_flags(plugin, [])), *ours)
