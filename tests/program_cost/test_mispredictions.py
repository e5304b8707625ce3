"""Mispredictions from a profile: loops, conditions, features and the trees."""

from pathlib import Path

import numpy as np
import pytest

from nestor.cost.isa.decoding import decode
from nestor.events.errors import EventsError
from nestor.policy.bundle import load, save
from nestor.policy.trees import TreesPolicy
from nestor.program_cost.graph.flow import flow_of
from nestor.program_cost.graph.loops import innermost_loops
from nestor.program_cost.mispredictions.conditions import condition_of
from nestor.program_cost.mispredictions.features import FEATURES, branches_of
from nestor.program_cost.mispredictions.model import (
    fit,
    mispredictions,
    packaged,
    predicted,
    with_predicted,
)
from tests.program_cost.test_model import JUMP, block, run_of

BACK = b"\x75\xf0"
CALL = bytes.fromhex("e800000000")


def nested() -> tuple[list[dict[str, object]], list[tuple[int, int, int]]]:
    """Return a loop of 10 turns, entered 5 times, in a loop of 5 turns with a call."""
    rows = [
        block(0, 1, taken=0),
        block(16, 5, CALL, exit="call", instructions=1),
        block(21, 5, taken=0),
        block(48, 50, taken=45, code=b"\x48\x01\xd8" + BACK),
        block(64, 5, taken=4),
        block(80, 1, taken=0),
    ]
    edges = [(0, 16, 1), (21, 48, 5), (48, 48, 45), (48, 64, 5), (64, 16, 4), (64, 80, 1)]
    return rows, edges


def test_loops_are_nested_and_turn_as_counted() -> None:
    table = run_of(*nested())
    loops = innermost_loops(flow_of(table), table.numbers("executions"))
    assert set(loops) == {1, 2, 3, 4}  # the call goes on behind itself
    assert (loops[3].depth, loops[3].turns, loops[3].entries) == (2, 10, 5)
    outer = loops[3].outer
    assert outer is loops[1]
    assert outer is not None
    assert (outer.head, outer.turns, outer.depth, outer.outer) == (1, 5, 1, None)


@pytest.mark.parametrize(
    ("code", "loads", "steps", "immediate"),
    [
        ("48833f0a 7500", 1, 0, 1),  # cmp qword ptr [rdi], 10; jne
        ("48ffc9 7500", 0, 0, -1),  # dec rcx; jne
        ("488b07 4885c0 7400", 1, 0, -1),  # mov rax, [rdi]; test rax, rax; je
        ("4883c101 4839d1 7500", 0, 1, -1),  # add rcx, 1; cmp rcx, rdx; jne
    ],
)
def test_conditions_say_what_they_hang_on(
    code: str, loads: int, steps: int, immediate: int
) -> None:
    found = condition_of([decode(bytes.fromhex(code))])
    assert (found.loads, found.steps, found.immediate) == (loads, steps, immediate)
    earlier = condition_of([decode(bytes.fromhex("488b0f")), decode(bytes.fromhex("4885c97500"))])
    assert (earlier.loads, earlier.earlier_loads) == (0, 1)


def test_every_branch_has_a_row() -> None:
    table = run_of(*nested())
    branches = branches_of(table)
    assert branches.rows.tolist() == [0, 2, 3, 4, 5]
    assert branches.features.shape == (5, len(FEATURES))
    assert np.isfinite(branches.features).all()
    rarer = branches.features[:, FEATURES.index("rarer")]
    np.testing.assert_allclose(rarer, [0, 0, 0.1, 0.2, 0])
    empty = branches_of(run_of([block(0, 0)], []))
    assert empty.features.shape == (0, len(FEATURES))
    assert not len(predicted(empty, packaged()))


def test_what_is_learned_is_predicted_and_kept(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = []
    for number in range(400):
        loads = number % 2 == 0
        code = bytes.fromhex("48833f0a" if loads else "4883f90a") + JUMP
        executions = int(random.integers(1000, 2000))
        taken = executions // 4
        missed = taken if loads else 0
        rows.append(
            block(32 * number, executions, code, taken=taken, mispredicts=missed, instructions=2)
        )
    table = run_of(rows, [])
    branches = branches_of(table)
    trees = fit([(branches, mispredictions(branches, table))])
    save(trees, tmp_path / "trees.safetensors")
    again = load(tmp_path / "trees.safetensors")
    assert isinstance(again, TreesPolicy)
    whole = with_predicted(table, again).numbers("mispredicts")
    np.testing.assert_allclose(whole[0::2], table.numbers("mispredicts")[0::2], rtol=0.15)
    assert whole[1::2].max() < 30


def test_packaged_trees_read_the_features() -> None:
    assert packaged().features == FEATURES
    table = run_of(*nested())
    found = with_predicted(table, packaged())
    assert found.numbers("mispredicts").shape == (6,)
    assert (found.numbers("mispredicts") <= 2 * table.numbers("executions")).all()
    assert found.total("indirect_mispredicts") == 0
    rows = [row | {"taken": None} for row in nested()[0]]
    with pytest.raises(EventsError, match="how often branches are taken"):
        with_predicted(run_of(rows, nested()[1]), packaged())
