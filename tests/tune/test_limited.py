"""Searches where another column than the score has a limit: what frees it pays for what saves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from nestor.build.incremental import Priced, ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Key
from nestor.tune.moves import Candidate, Candidates, Move, MoveSource, Question
from nestor.tune.search import SearchSettings, search
from nestor.tune.state import Point, State

PRICE = 0.5
WEIGHT = 1000.0
"""Of each function before anything is moved, in the score and in bytes."""
Effects = Mapping[str, tuple[float, float]]
"""What each move changes of the score and of its function's bytes."""


@dataclass
class Builder:
    """Builds a program of which each function has one move."""

    effects: Effects
    joint: float = 0.0
    """Bytes that the program takes more where all moves are made."""
    modes: tuple[str, ...] = ("run",)
    compiled: float = 0.0
    compiles: float = 0.0
    built: list[set[str]] = field(default_factory=list)

    def build(self, overrides: Mapping[str, bool], **_: Any) -> ProgramBuild:
        self.built.append(set(overrides))
        self.compiles += 1
        score, code = {}, {}
        for number, (name, (change, amount)) in enumerate(self.effects.items()):
            moved = name in overrides
            code[number] = WEIGHT + moved * amount
            score[number] = WEIGHT + moved * change
        text = sum(code.values()) + self.joint * (overrides.keys() == self.effects.keys())
        return ProgramBuild(
            dict(cast(Any, overrides)),
            "J",
            {"run": {"J": sum(score.values()), "text": text}},
            {"run": {number: score[number] + PRICE * code[number] for number in score}},
            {},
            {},
            priced={"run": Priced("text", PRICE, code)},
        )

    def keep_only(self, overrides: Mapping[str, bool]) -> None: ...


class Reach:
    """A move changes its own function."""

    def of(self, move: Move) -> frozenset[int]:
        return frozenset(question.row[1] for question in move.questions)


@dataclass(frozen=True)
class Moves:
    """A move for each function that is as it was."""

    builder: Builder
    besides: Mapping[str, str] = field(default_factory=dict)
    """The unit of each move that is not worth a compile of its own; others are of unit a."""
    improvement: None = None

    def reach(self, *_: Any) -> Reach:
        return Reach()

    def pins(self, _: Any) -> dict[Any, Any]:
        return {}

    def candidates(self, *_: Any) -> Candidates:
        found: dict[bool, list[Candidate]] = {False: [], True: []}
        for number, name in enumerate(self.builder.effects):
            if name not in self.builder.built[0]:
                question = Question(cast(Key, name), False, False, ("unit", number))
                move = Move.one(question.key, True, (question,))
                units = frozenset([self.besides.get(name, "a")])
                candidate = Candidate(move, frozenset([number]), 0.0, 0, units=units)
                found[name in self.besides].append(candidate)
        return Candidates(first=[found[False]], besides=found[True])


def searched(builder: Builder, room: float, besides: Mapping[str, str] | None = None) -> set[str]:
    """Return the moves that a search makes which may add ``room`` bytes."""
    start = builder.build({})
    limits = {"run": {"text": start.columns["run"]["text"] + room}}
    state = State(curve=(Point.of(0.0, start),))
    settings = SearchSettings(compiles=8.0, learned=False, pairs=False)
    moves = cast(MoveSource, Moves(builder, besides or {}))
    found = search(cast(ProgramBuilder, builder), moves, state, settings, 0, limits=limits)
    return set(map(str, found.overrides))


SAVES = {"saves": (-10.0, 5.0)}
FREES = {"frees": (1.0, -6.0)}


@pytest.mark.parametrize(
    ("effects", "room", "made"),
    [
        (SAVES, 5.0, {"saves"}),
        (SAVES, 4.0, set()),
        (SAVES | FREES, 0.0, {"saves", "frees"}),
        (FREES, 0.0, set()),
        ({"little": (-1.0, 5.0)}, 5.0, {"little"}),  # dear, but there is room
        (SAVES | {"little": (-1.0, 5.0)}, 6.0, {"saves"}),
    ],
)
def test_what_is_made_holds_the_limit(effects: Effects, room: float, made: set[str]) -> None:
    assert searched(Builder(effects), room) == made


def test_moves_that_take_more_together_than_alone_are_chosen_from_again() -> None:
    both = {"saves": (-10.0, 5.0), "too": (-5.0, 5.0)}
    assert searched(Builder(both), 10.0) == set(both)
    assert searched(Builder(both, joint=2.0), 10.0) == {"saves"}


def test_what_is_worth_no_compile_is_tried_beside_others() -> None:
    effects = SAVES | {"same unit": (1.0, -6.0), "other unit": (2.0, -6.0)}
    builder = Builder(effects)
    assert searched(builder, 0.0, {"same unit": "a", "other unit": "b"}) == {"saves", "same unit"}
    tried = [built for built in builder.built if built]
    assert tried[0] == {"saves", "same unit"}
    assert any("other unit" in built for built in tried), "when nothing else was left"
