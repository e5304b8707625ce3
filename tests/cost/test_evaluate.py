"""An evaluation counts every row once and says what it could not judge."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from nestor.cost.blocks.table import Table, TableError
from nestor.cost.contract import Prediction
from nestor.cost.judge.evaluate import evaluate, judge

BLOCKS = tuple(bytes([0x48, 0x01, 0xC0 + i] * (1 + i % 3)) for i in range(8))
"""One to three additions."""
LOAD = bytes.fromhex("488b03")


@dataclass(frozen=True)
class Fixed:
    """Predicts what ``answers`` hold, and one cycle for anything else."""

    answers: dict[bytes, float]

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        cycles = np.array([self.answers.get(block, 1.0) for block in blocks])
        return Prediction(cycles, cycles * 0.9, cycles * 1.1)


def table(cycles: Sequence[float], spread: Sequence[float], blocks: Sequence[bytes]) -> Table:
    return Table(tuple(blocks), np.array(cycles), np.array(spread))


def test_failed_and_unlabelled_rows_are_counted_and_in_no_mean() -> None:
    answers = dict.fromkeys(BLOCKS, 2.0) | {BLOCKS[0]: np.nan}
    rows = table([1.0, 1.0, 2.0, np.nan, 4.0], [0.0, 0.04, 0.05, 0.0, np.nan], BLOCKS[:5])
    found = evaluate(Fixed(answers), rows)
    assert (found.every.n, found.failed, found.unlabelled) == (3, 1, 1)
    assert found.every.mape == pytest.approx((100 + 0 + 50) / 3)
    assert found.stable.n == 1
    assert found.stable.mape == pytest.approx(100)
    assert found.coverage.share == 0.0


def test_the_json_is_what_the_documentation_says() -> None:
    rows = table([1.0, 2.0, 3.0], [0.0, 0.1, 0.0], BLOCKS[:3])
    content = json.loads(json.dumps(evaluate(Fixed({BLOCKS[1]: 2.0}), rows).to_json()))
    wanted = {"n", "mape", "median_ape", "kendall", "spearman"}
    assert wanted | {"blocks_per_second", "stable_only"} <= set(content)
    assert set(content["stable_only"]) == wanted
    assert content["n"] == 3
    assert content["blocks_per_second"] > 0


def test_errors_by_length_and_category() -> None:
    rows = table([1.0, 2.0, 1.0, 2.0], [0.0] * 4, [*BLOCKS[:3], LOAD])
    found = evaluate(Fixed({}), rows)
    assert {name: q.n for name, q in found.by_length.items()} == {"1": 2, "2-3": 2}
    assert {name: q.n for name, q in found.by_category.items()} == {"integer": 4, "load": 1}
    assert found.by_category["load"].mape == pytest.approx(50)


def test_the_worst_come_first_whether_too_high_or_too_low() -> None:
    rows = table([1.0, 1.0, 1.0], [0.0] * 3, BLOCKS[:3])
    found = evaluate(Fixed({BLOCKS[0]: 2.0, BLOCKS[1]: 0.25, BLOCKS[2]: 1.5}), rows)
    assert [w.block_hex for w in found.worst] == [BLOCKS[i].hex() for i in (1, 0, 2)]


def test_speed_is_rows_over_time_after_a_warm_up() -> None:
    ticks = iter([10.0, 12.0])
    predicted: list[int] = []

    @dataclass(frozen=True)
    class Counting(Fixed):
        def predict(self, blocks: Sequence[bytes]) -> Prediction:
            predicted.append(len(blocks))
            return super().predict(blocks)

    rows = table([1.0] * 8, [0.0] * 8, BLOCKS)
    assert judge(Counting({}), rows, lambda: next(ticks)).seconds == 2.0
    assert predicted == [1, 8]


def test_nothing_to_judge_by_is_said() -> None:
    unknown = table([np.nan], [np.nan], BLOCKS[:1])
    with pytest.raises(TableError, match="nestor blocks measure"):
        evaluate(Fixed({}), unknown)
    with pytest.raises(TableError, match="answers none"):
        evaluate(Fixed({BLOCKS[0]: np.nan}), table([1.0], [0.0], BLOCKS[:1]))
