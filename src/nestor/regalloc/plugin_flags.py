"""The options with which the plugin is asked to decide about register allocation."""

from __future__ import annotations  # commands that only print options start without numpy

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nestor.compiler.plugin import Plugin
from nestor.problem.in_builds import problems_in_builds

if TYPE_CHECKING:
    from nestor.policy.names import NamedPolicy
    from nestor.problem.rollout import Request, Store

Decision = Literal["eviction", "priority"]
"""What is decided, in the words of the plugin's options."""


@dataclass(frozen=True)
class Logs:
    """Where a compile writes."""

    allocations: Path
    """What the functions will execute."""
    questions: Path | None = None
    """The trajectory."""


def as_flags(plugin: Plugin, options: Sequence[str]) -> list[str]:
    """Return words for ``clang -cc1`` that load the plugin and give it ``options``."""
    return plugin.words(options)


def policy_option(decision: Decision, policy: NamedPolicy, files: Store) -> str:
    """Return the option that names a policy; ``files`` takes its content."""
    file = "default" if policy.policy is None else files.write(policy.data)
    return f"-nestor-{decision}={file}"


def request_options(
    request: Request, decision: Decision, files: Store, logs: Logs, labels: int = 0
) -> list[str]:
    """Return the plugin's options for ``request``; the stock compiler is only observed.

    :param files: takes the contents that the options name.
    :param labels: trials per function whose results the trajectory gets.
    """
    options = [f"-nestor-allocation-log={logs.allocations}"]
    if request.overrides is not None:
        file = files.write(request.overrides.encode())
        options.append(f"-nestor-allocation-overrides={file}")
    if request.policy is not None:
        options.append(policy_option(decision, request.policy, files))
    options += [f"{option}={files.write(other.data)}" for option, other in _also(request)]
    if logs.questions is not None:
        options.append(f"-nestor-{decision}-log={logs.questions}")
        options += [f"-nestor-allocation-labels={labels}"] if labels else []
    if request.seed is not None:
        options.append(f"-nestor-seed={request.seed}")
    if request.by_group:
        options.append("-nestor-seed-functions")
    if request.temperature is not None:
        options.append(f"-nestor-temperature={request.temperature!r}")
    return options


def _also(request: Request) -> list[tuple[str, NamedPolicy]]:
    """Return the policies about other decisions, with the options that take them."""
    if not request.also:
        return []
    problems = problems_in_builds(first="")
    return [
        (problems[other.policy.metadata.problem].policy, other)
        for other in request.also
        if other.policy is not None
    ]
