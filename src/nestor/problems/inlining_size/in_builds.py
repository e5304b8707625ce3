"""Inlining in a user's build: the plugin's options and the files that they name."""

from typing import Final

from nestor.corpus.level import Level
from nestor.problem.in_builds import InBuilds, InLto, TextKind
from nestor.problems.inlining_size.features.site import TRIALS


def _check_overrides(text: str) -> None:
    from nestor.problems.inlining_size.search import overrides

    overrides.parse(text)


def _check_summary(text: str) -> None:
    from nestor.problems.inlining_size.summary import program_summary

    program_summary.parse(text)


LEVELS: Final[tuple[Level, ...]] = ("-Oz",)
"""Where policies act: in functions of these levels (``actsIn`` in ``native/plugin/inlining``)."""

IN_BUILDS: Final = InBuilds(
    problem="inlining-size",
    policy="-nestor-policy",
    overrides=TextKind(
        option="-nestor-overrides",
        folder="overrides",
        holds="overrides",
        makers=("'nestor guard'", "'nestor tune'"),
        header="nestor-overrides 1",
        check=_check_overrides,
    ),
    levels=LEVELS,
    summary=TextKind(
        option="-nestor-program",
        folder="summaries",
        holds="a summary",
        makers=("'nestor summary'",),
        header="nestor-program 1",
        check=_check_summary,
    ),
    trials="-nestor-trials",
    tried=frozenset(TRIALS),
    usual="shipped",
    in_lto=InLto(
        instead={"shipped": "shipped-lto"},
        only={"shipped-lto": "shipped", "distilled-lto": "distilled"},
        starts={"distilled": "distilled-lto"},
    ),
)
