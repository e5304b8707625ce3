"""Ways to compile that must agree, for the identity gate.

For the default heuristic: the stock compiler, the plugin idle, following the default, and logging
while it does, and the interactive channel answered with the default. For a policy: the plugin
evaluating it in C++ (what a release does), the same with the log (what training does), and the
channel answered by the same policy in Python.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from nestor.compiler.channel import ChannelError, compile_over_channel
from nestor.compiler.plugin import Plugin
from nestor.compiler.releases import CHANNEL_DEFAULT
from nestor.compiler.toolchain import capabilities
from nestor.corpus.level import last_level
from nestor.policy.names import NamedPolicy
from nestor.problem.identity import Circumstances, Command, Way, way_by_flags
from nestor.problems.inlining_size.channel import Answer, channel_options, echo, evaluate
from nestor.problems.inlining_size.features.site import SITE_FEATURES
from nestor.problems.inlining_size.log import read
from nestor.problems.inlining_size.plugin_flags import plugin_flags


def ways(plugin: Plugin, policy: NamedPolicy, folder: Path, levels: Sequence[str]) -> Sequence[Way]:
    """Return the ways; see :meth:`nestor.problem.problem.Problem.ways`.

    :param levels: at which the policy acts.
    """
    log = folder / "log"

    def logged() -> int:
        return len(read(log))

    plugged: tuple[Way, ...]
    toolchain = plugin.toolchain
    has_channel = "inliner" in capabilities(toolchain).channels and toolchain.has(CHANNEL_DEFAULT)
    if policy.policy is None:
        plugged = (
            way_by_flags("stock", []),
            way_by_flags("idle", plugin.words()),
            way_by_flags("default", plugin_flags(plugin, "default")),
            way_by_flags("logged", plugin_flags(plugin, "default", log=log), logged),
        )
        return (*plugged, _by_channel("channel", lambda: echo)) if has_channel else plugged
    evaluated = policy.policy
    file = folder / "policy.safetensors"
    file.write_bytes(policy.data)
    plugged = (
        way_by_flags("release", plugin_flags(plugin, file)),
        way_by_flags("logged", plugin_flags(plugin, file, log=log), logged),
    )
    if not has_channel or set(SITE_FEATURES) & set(evaluated.features):
        return plugged  # LLVM's channel sends its own features only.
    return (*plugged, _by_channel("channel, Python", lambda: evaluate(evaluated), echo, levels))


def _by_channel(
    name: str,
    answers: Callable[[], Answer],
    elsewhere: Answer | None = None,
    own: Sequence[str] = (),
) -> Way:
    """Return a way over the channel.

    :param elsewhere: answers at other levels than the policies', ``own``, if that makes a
        difference. What is asked does not say of which level a function is; a module has one,
        unless its source marks functions.
    """

    def compile_once(command: Command, out: Path, use: Circumstances) -> int | None:
        at_level = last_level(map(str, command)) in own
        answer = answers() if at_level or elsewhere is None else elsewhere

        def unless_cancelled(row: npt.NDArray[Any]) -> int:
            if use.cancelled.is_set():
                raise ChannelError("cancelled")
            return answer(row)

        return compile_over_channel(
            [*command, "-o", out], unless_cancelled, channel_options, use.limits
        )

    return Way(name, compile_once, counts=True)
