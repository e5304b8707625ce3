"""Proposals go farther while the score falls and the limits hold, and never past either."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from nestor.build.build import BuildError
from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.tune.moves import MoveSource
from nestor.tune.proposals import FIRST_EXTENT, propose

LIMITS = {"run": {"J": 100.0, "text": 102.0}}


@dataclass
class Builder:
    """Builds a program of which only the extent of its last proposal matters."""

    weigh: Callable[[float], tuple[float, float]]
    """J and code under an extent."""
    compiles: float = 0.0
    extents: list[float] = field(default_factory=list)

    def build(self, overrides: dict[str, float]) -> ProgramBuild:
        self.compiles += 1
        extent = overrides.get("extent", 0.0)
        self.extents.append(extent)
        total, text = self.weigh(extent)
        columns = {"run": {"J": total, "text": text}}
        return ProgramBuild(overrides, "J", columns, {"run": {}}, {}, {})


class Moves:
    """Proposes an extent, the same on every build."""

    def plain(self, build: ProgramBuild) -> dict[str, Any]:
        return {}

    def written(self, plain: ProgramBuild) -> Calls | None:
        return Calls(entries={1: int(plain.overrides["extent"])})

    def proposal(self, build: ProgramBuild, written: Calls | None, extent: float) -> dict[str, Any]:
        assert written is None
        return {"extent": build.overrides.get("extent") or extent}

    def revised(self, before: ProgramBuild, after: ProgramBuild) -> dict[str, Any]:
        return {key: value for key, value in after.overrides.items() if key != "bad"}


def best_of(
    weigh: Callable[[float], tuple[float, float]], most: float = 12, moves: Moves | None = None
) -> tuple[Any, Builder]:
    builder = Builder(weigh)
    start = ProgramBuild({}, "J", {"run": {"J": 100.0, "text": 100.0}}, {"run": {}}, {}, {})
    source = cast(MoveSource, moves or Moves())
    found, _ = propose(cast(ProgramBuilder, builder), source, start, LIMITS, most)
    return found, builder


def test_a_proposal_goes_farther_while_that_pays() -> None:
    found, builder = best_of(lambda extent: (100 - 100 * extent, 100))
    assert builder.extents[:3] == sorted(builder.extents[:3])
    assert found.overrides["extent"] == max(builder.extents) > 10 * FIRST_EXTENT


def test_too_much_code_makes_it_go_less_far() -> None:
    found, builder = best_of(lambda extent: (100 - 100 * extent, 100 + 150 * extent))
    assert builder.extents[0] > builder.extents[1]
    assert found.total < 100
    assert found.columns["run"]["text"] <= 102


def test_without_a_gain_it_goes_farther_while_the_limits_hold() -> None:
    found, _ = best_of(lambda extent: (90 if extent > 0.1 else 100.1, 100))
    assert found.total == 90
    found, builder = best_of(lambda extent: (100.1, 100 + 25 * extent))
    assert found.overrides == {}
    assert builder.extents[0] < builder.extents[1] < builder.extents[2]


def test_nothing_that_is_worse_or_does_not_build_is_taken() -> None:
    def fails(extent: float) -> tuple[float, float]:
        raise BuildError("no")

    for weigh in (lambda extent: (101.0, 90.0), lambda extent: (90.0, 103.0), fails):
        found, _ = best_of(weigh)
        assert found.overrides == {}


def test_the_budget_holds() -> None:
    _, builder = best_of(lambda extent: (100 - 100 * extent, 100), most=2)
    assert builder.compiles == 2


def test_a_proposal_is_told_of_the_build_without_inlining() -> None:
    class Informed(Moves):
        def plain(self, build: ProgramBuild) -> dict[str, Any]:
            return {"extent": -1.0}

        def proposal(
            self, build: ProgramBuild, written: Calls | None, extent: float
        ) -> dict[str, Any]:
            return {"extent": 1.0} if written == Calls(entries={1: -1}) else {}

    found, builder = best_of(lambda extent: (100 - extent, 100), moves=Informed())
    assert builder.extents == [-1.0, 1.0]
    assert found.total == 99

    _, builder = best_of(lambda extent: (100 - extent, 100), most=1.9, moves=Informed())
    assert not builder.extents  # there is nothing that this one proposes without it

    def fails_plain(extent: float) -> tuple[float, float]:
        if extent < 0:
            raise BuildError("no")
        return 100 - extent, 100

    found, _ = best_of(fails_plain, moves=Informed())
    assert found.overrides == {}
