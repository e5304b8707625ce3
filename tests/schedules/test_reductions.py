"""Micro kernels take several steps of their reduction in an iteration, and any number of steps."""

from pathlib import Path

import pytest

from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.verify import verify
from nestor.schedules.language.library import packaged
from nestor.schedules.language.linking import link
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.payload.reference import Reference, as_generics
from nestor.schedules.tools import find_tools
from tests.schedules.kernels import compile_text

MATMUL = {"tile_m": 64, "tile_n": 64, "tile_k": 64, "reg_m": 4, "reg_n": 16, "edge": 16,
          "inner": 0, "packing": 0, "parallel": 0}  # fmt: skip


def contractions(k: int) -> list[int]:
    """Return how many products each loop of a micro kernel has, for a reduction of ``k`` steps."""
    tools = find_tools()
    payload = read_payload(texts.matmul(4, 16, k), tools)
    linked = link(packaged(), "matmul", MATMUL, print_after=["matmul_block"])
    (_, text), *_ = lower(payload, linked, tools).stages
    # Loops of a micro kernel carry its accumulators: nothing else does.
    bodies = text.split("iter_args(")[1:]
    return [body.split("scf.yield")[0].count("vector.contract") for body in bodies]


def test_an_iteration_takes_four_steps_of_a_reduction() -> None:
    assert contractions(64) == [4]


def test_steps_that_are_left_are_taken_one_by_one() -> None:
    assert contractions(63) == [4, 1]


@pytest.mark.parametrize(
    "text",
    [
        texts.matmul(4, 16, 1),
        texts.matmul(8, 32, 2),
        texts.matmul(8, 32, 7),
        texts.matmul_bias_relu(7, 33, 1),
        texts.batch_matmul(2, 5, 17, 1),
    ],
    ids=["one step", "two steps", "seven steps", "fused, one step", "batch, one step"],
)
def test_short_reductions_are_right(text: str, tmp_path: Path) -> None:
    tools = find_tools()
    payload = read_payload(text, tools)
    kernel = compile_text(text, tools, tmp_path)
    verdict = verify(kernel, Reference(as_generics(payload, tools), payload.name), seed=5)
    assert verdict.correct, verdict.reason
