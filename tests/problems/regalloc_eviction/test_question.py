"""Rows of features: many questions at once, and as C++ makes them."""

from typing import Any

import numpy as np
import pytest

from nestor.problems.regalloc_eviction.question import (
    CANDIDATES,
    LLVM_22,
    MASK,
    OWN,
    WEIGHT,
    Layout,
    Questions,
)

TYPES = [(MASK, "<i8", (CANDIDATES,)), ("progress", "<f4")] + [
    (name, "<i8" if name.startswith(("is_", "m")) else "<f4", (CANDIDATES,))
    for name in LLVM_22.per_candidate
]


def questions(*weights: dict[int, float]) -> Questions:
    """Return a question for each dictionary of candidates and weights; other values are 0."""
    records: Any = np.zeros(len(weights), dtype=TYPES)
    for number, own in enumerate(weights):
        records["progress"][number] = number / 4
        for index, weight in own.items():
            records[MASK][number, index] = 1
            records[WEIGHT][number, index] = weight
    return Questions(LLVM_22, records)


def test_rows_stand_question_by_question() -> None:
    asked = questions({3: 0.5, 7: 1.0, OWN: 0.25}, {0: 1.0})
    assert asked.question.tolist() == [0, 0, 0, 1]
    assert asked.index.tolist() == [3, 7, OWN, 0]
    assert asked.row_of(np.array([OWN, 0])).tolist() == [2, 0]
    columns = asked.columns()
    assert set(columns) == set(LLVM_22.features)
    assert columns["position"].tolist() == [3, 7, 32, 0]
    assert columns["is_own"].tolist() == [0, 0, 1, 0]
    assert columns["candidates"].tolist() == [3, 3, 3, 1]
    assert columns["progress"].tolist() == [0, 0, 0, 0.25]
    assert columns["weight_to_own"].tolist() == [1, 2, 0, 32]
    assert columns["weight_to_least"].tolist() == [0, 1, -1, 0]


def test_logarithms_are_linear_between_powers_of_two() -> None:
    columns = questions({0: 0.75, 1: 1e-30, OWN: 1.0}).columns()
    assert columns["weight_to_own"].tolist() == [-0.5, -32, 0]


def test_numbers_are_finite() -> None:
    columns = questions({0: np.nan, 1: np.inf, 2: -np.inf, OWN: 0.5}).columns()
    assert columns[WEIGHT].tolist() == [1.0, 1e30, -1e30, 0.5]
    assert all(np.isfinite(values).all() for values in columns.values())


def test_features_of_the_default_are_the_same_for_all_rows() -> None:
    asked = questions({3: 0.5, 7: 1.0}, {0: 1.0, OWN: 0.25})
    columns = asked.columns()
    of_default = asked.default_columns(columns, np.array([1, 0]))
    assert set(of_default) == set(LLVM_22.default_features)
    assert of_default["eviction_default"].tolist() == [0, 1, 1, 0]
    assert of_default["position_of_default"].tolist() == [7, 7, 0, 0]
    assert of_default["use_def_density_of_default"].tolist() == [1, 1, 1, 1]


def test_no_question_has_no_row() -> None:
    asked = questions()
    columns = asked.columns()
    columns |= asked.default_columns(columns, np.zeros(0, np.int64))
    assert all(len(values) == 0 for values in columns.values())


def test_another_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="no such tensor 'x'"):
        Layout.of([(MASK, (1, 33)), (WEIGHT, (1, 33)), ("x", (7,))])
    with pytest.raises(ValueError, match="no such tensor 'mask'"):
        Layout.of([(WEIGHT, (1, 33))])
