"""What the stock heuristic would choose: rule by rule, and against the compiler itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.compiler.channel import ChannelError, Tensor, compile_over_channel
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain
from nestor.problems.regalloc_eviction.channel import OpenQuestion, channel_options, layout_of
from nestor.problems.regalloc_eviction.default import default_answer
from nestor.problems.regalloc_eviction.question import CANDIDATES, LLVM_22, MASK, OWN, WEIGHT
from nestor.rollout.gate import probe_folder

FLOATS = [name for name in LLVM_22.per_candidate if not name.startswith(("is_", "m"))]


def question(weights: dict[int, float], **values: dict[int, float]) -> OpenQuestion:
    """Return a question with these candidates, and other values than 0 where they are named."""
    types = [(MASK, "<i8", (1, CANDIDATES)), ("progress", "<f4", (1,))]
    types += [
        (name, "<f4" if name in FLOATS else "<i8", (1, CANDIDATES))
        for name in LLVM_22.per_candidate
    ]
    row: Any = np.zeros((), dtype=types)
    for index, weight in weights.items():
        row[MASK][0, index] = 1
        row[WEIGHT][0, index] = weight
    for name, own in values.items():
        for index, value in own.items():
            row[name][0, index] = value
    return OpenQuestion(LLVM_22, row)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        # The lightest that is lighter than the live range that needs a register.
        (question({0: 0.5, 3: 0.2, OWN: 1.0}), 3),
        (question({0: 0.5, 3: 0.2, OWN: 0.2}), OWN),
        # Few broken hints come before a small weight, few broken cascades before both.
        (question({0: 0.5, 3: 0.2, OWN: 1.0}, nr_broken_hints={3: 1.0}), 0),
        (question({0: 0.5, 3: 0.2, OWN: 1.0}, nr_broken_hints={3: 1.0}, nr_urgent={0: 1.0}), 3),
        # A register with live ranges local to the block will do only as the first.
        (question({0: 0.5, 3: 0.2, OWN: 1.0}, is_local={3: 1}), 0),
        (question({0: 0.5, 3: 0.2, OWN: 1.0}, is_local={0: 1, 3: 1}), 0),
        # A hint ends the search.
        (question({0: 0.5, 3: 0.2, OWN: 1.0}, is_hint={0: 1}), 0),
        # Without itself among the candidates, a live range must take one, whatever it weighs.
        (question({4: 1.0, 7: 0.9}), 7),
        (question({4: 1.0, 7: 0.9}, is_local={7: 1}), 7),
        # Infinity over infinity is the largest weight.
        (question({0: 0.0, 3: np.nan, OWN: np.nan}), 0),
        (question({3: np.nan, OWN: np.nan}), OWN),
    ],
)
def test_each_rule_of_the_heuristic(asked: OpenQuestion, chosen: int) -> None:
    assert default_answer(asked) == chosen


def test_rows_are_finite_and_say_which_candidate_they_are() -> None:
    asked = question({0: 0.25, 3: np.nan, OWN: 0.5}, liverange_size={3: 1.0})
    assert np.isfinite(asked.matrix(LLVM_22.features)).all()
    column = {name: values.tolist() for name, values in asked.columns.items()}
    assert column["position"] == [0.0, 3.0, 32.0]
    assert column["is_own"] == [0.0, 0.0, 1.0]
    assert column["weight_to_own"] == [-1.0, 1.0, 0.0]
    assert column["weight_to_least"] == [0.0, 2.0, 1.0]
    assert column["candidates"] == [3.0] * 3
    assert column["liverange_size"] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("probe", ["probe.c", "probe.cpp"])
def test_its_answers_give_the_stock_object(
    probe: str, toolchain: Toolchain, tmp_path: Path
) -> None:
    command: list[str | Path] = [str(toolchain.clang), "-O2", "-c", probe_folder() / probe, "-o"]
    assert run([*command, tmp_path / "stock.o"]).ok
    layouts = []

    def answer(tensors: Any) -> int:
        layouts.append(tensors.dtype.names)
        return default_answer(OpenQuestion(LLVM_22, tensors))

    count = compile_over_channel([*command, tmp_path / "x.o"], answer, channel_options)
    assert count >= 5
    assert (tmp_path / "x.o").read_bytes() == (tmp_path / "stock.o").read_bytes()
    # The names for units without a question are those that the compiler sends.
    assert set(layouts[0]) == {MASK, *LLVM_22.per_candidate, *LLVM_22.per_question}


def test_another_way_of_asking_is_refused() -> None:
    tensors = [Tensor(name, "float", (1, CANDIDATES)) for name in LLVM_22.per_candidate]
    mask = Tensor(MASK, "int64_t", (1, CANDIDATES))
    assert layout_of([mask, *tensors]).per_candidate == LLVM_22.per_candidate
    for wrong in ([mask, *tensors, Tensor("x", "float", (1, 7))], tensors):
        with pytest.raises(ChannelError, match="not supported"):
            layout_of(wrong)
