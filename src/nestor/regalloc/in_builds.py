"""Register allocation in a user's build: the plugin's options and the files that they name."""

from typing import Final

from nestor.problem.in_builds import InBuilds, TextKind
from nestor.regalloc.plugin_flags import Decision


def _check_overrides(text: str) -> None:
    from nestor.regalloc import overrides

    overrides.parse(text)


OVERRIDES: Final = TextKind(
    option="-nestor-allocation-overrides",
    folder="overrides",
    holds="overrides",
    makers=("'nestor tune'",),
    header="nestor-allocation-overrides 1",
    check=_check_overrides,
)
"""The same file has the answers about evictions and about priorities."""


def in_builds(problem: str, decision: Decision) -> InBuilds:
    """Return what a build's options say about one decision of the register allocator."""
    return InBuilds(
        problem=problem,
        policy=f"-nestor-{decision}",
        overrides=OVERRIDES,
        best="-nestor-best",
    )
