"""What a run costs: chains, quantities, weights, estimates and comparisons."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nestor.cost.registry import open_model
from nestor.errors import NestorError
from nestor.events.errors import EventsError
from nestor.events.table import BLOCKS, EDGES, EVENTS, About, EventTable
from nestor.program_cost import penalties, weights
from nestor.program_cost.chains import chains
from nestor.program_cost.chases import follows_pointers
from nestor.program_cost.compare import compare
from nestor.program_cost.estimate import by_block, by_function, estimate
from nestor.program_cost.penalties import Penalties, PenaltiesError
from nestor.program_cost.quantities import QUANTITIES, quantities
from nestor.program_cost.weights import MeasuredRun, Weights, WeightsError

MACHINE = Penalties("a machine", 20.0, 1.0, 5.0, 0.0, 5.0, 4.0, 14.0, 54.0, 304.0, 30.0)
ADD = bytes.fromhex("4801d8")  # add rax, rbx
JUMP = b"\x75\x00"


def run_of(rows: Sequence[dict[str, object]], edges: Sequence[tuple[int, int, int]]) -> EventTable:
    """Return a run of blocks of one object; what a row does not say is 0."""
    columns: dict[str, list[object]] = {name: [] for name in BLOCKS.names}
    for row in rows:
        usual = {"object": "/program", "function": "f", "exit": "conditional"}
        for name in BLOCKS.names:
            columns[name].append(row.get(name, usual.get(name, 0)))
    blocks = pa.table(columns, schema=BLOCKS)
    names = ["/program"] * len(edges)
    ends = [[edge[i] for edge in edges] for i in range(3)]
    table = pa.table([names, ends[0], names, ends[1], ends[2]], schema=EDGES)
    return EventTable(About("simulated", 1, "program"), blocks, table)


def block(
    address: int, executions: int, code: bytes = ADD + JUMP, **more: object
) -> dict[str, object]:
    """Return a row; the code has additions and a jump if ``instructions`` does not say else."""
    own = {"address": address, "executions": executions, "code": code}
    return own | {"instructions": 1 + len(code[: -len(JUMP)]) // len(ADD)} | more


def test_blocks_are_joined_where_nearly_all_executions_go() -> None:
    table = run_of(
        [block(0, 100), block(16, 100), block(32, 60), block(48, 40), block(64, 100)],
        [(0, 16, 100), (16, 32, 60), (16, 48, 40), (32, 64, 60), (48, 64, 40), (64, 0, 99)],
    )
    # 64 leads back to 0, so the two and 16 are one piece; the branch at 16 is not one.
    assert {frozenset(chain.rows) for chain in chains(table)} == {
        frozenset({0, 1, 4}), frozenset({2}), frozenset({3})
    }  # fmt: skip
    assert sorted(row for chain in chains(table) for row in chain.rows) == [0, 1, 2, 3, 4]


def test_a_block_that_goes_back_to_itself_repeats() -> None:
    table = run_of([block(0, 100), block(16, 1)], [(0, 0, 99), (0, 16, 1)])
    assert {(chain.rows, chain.repeats) for chain in chains(table)} == {((0,), True), ((1,), False)}


def test_turns_of_a_loop_are_those_of_its_edges() -> None:
    table = run_of(
        [block(0, 90), block(16, 10), block(32, 10)], [(16, 0, 10), (0, 0, 90), (0, 32, 10)]
    )
    (loop,) = [chain for chain in chains(table) if chain.repeats]
    assert loop.turns == 10  # of a hundred, of which samples saw ninety


def test_a_loop_costs_its_latency_and_a_pass_does_not() -> None:
    model = open_model("bound")
    multiply = bytes.fromhex("480fafc3") * 3 + JUMP  # imul rax, rbx: three cycles each
    rows = [block(0, 100_000, multiply, instructions=4)]
    loop = quantities(run_of(rows, [(0, 0, 99_999)]), model, MACHINE)
    once = quantities(run_of(rows, []), model, MACHINE)
    assert loop.columns["compute"].sum() == pytest.approx(900_000, rel=0.01)
    assert loop.columns["recurrence"].sum() == 0
    assert once.columns["compute"].sum() < 900_000
    total = once.columns["compute"] + once.columns["recurrence"]
    assert total.sum() == pytest.approx(900_000)
    # Of a loop of ten turns, many entries run side by side; it waits for nothing then.
    short = quantities(run_of(rows, [(0, 0, 90_000)]), model, MACHINE)
    assert short.columns["compute"].sum() == once.columns["compute"].sum()


def test_misses_of_a_loop_that_follows_pointers_are_apart() -> None:
    follow = bytes.fromhex("488b1b") + JUMP  # mov rbx, [rbx]
    walk = bytes.fromhex("4883c3088b03") + JUMP  # add rbx, 8; mov eax, [rbx]
    for code, name, other in ((follow, "chased", "l2"), (walk, "l2", "chased")):
        rows = [block(0, 1000, code, l1_misses=70, l2_misses=70)]
        run = quantities(run_of(rows, [(0, 0, 999)]), open_model("bound"), MACHINE)
        assert run.columns[name].sum() == 70 * 50
        assert run.columns[other].sum() == 0


def test_following_pointers_is_seen_through_other_instructions() -> None:
    assert follows_pointers(bytes.fromhex("488b431048634008488b1cc3"))  # by way of rax
    assert not follows_pointers(bytes.fromhex("488b1b31db"))  # then xor ebx, ebx
    assert not follows_pointers(b"\x06")


def test_events_cost_what_they_cost_on_the_machine() -> None:
    events: dict[str, Any] = {
        "taken": 50, "mispredicts": 7, "indirect_mispredicts": 3, "l1_misses": 100,
        "l2_misses": 30, "llc_misses": 10, "tlb_misses": 2, "rep_bytes": 3200, "code_misses": 5,
    }  # fmt: skip
    run = quantities(run_of([block(0, 100, **events)], []), open_model("bound"), MACHINE)
    assert {name: run.columns[name].sum() for name in QUANTITIES[2:]} == {
        "taken": 50, "mispredict": 200, "l1": 70 * 10, "l2": 20 * 50, "llc": 10 * 300,
        "chased": 0, "code": 5 * 14, "tlb": 2 * 30, "rep": 100,
    }  # fmt: skip


def test_a_run_of_nothing_is_refused() -> None:
    with pytest.raises(EventsError, match="no block that was executed"):
        quantities(run_of([], []), open_model("bound"), MACHINE)


def test_code_without_an_answer_is_counted() -> None:
    rows = [block(0, 30), block(16, 10, b"\x06\x06" + JUMP, instructions=6)]
    run = quantities(run_of(rows, []), open_model("bound"), MACHINE)
    assert run.unanswered == pytest.approx(60 / 120)
    assert run.columns["compute"][1] == pytest.approx(20)


def test_shares_add_up_and_name_what_bounds() -> None:
    rows = [
        block(0, 100),
        block(16, 100, mispredicts=90, function="g"),
        block(32, 50, function="g"),
    ]
    run = quantities(run_of(rows, []), open_model("bound"), MACHINE)
    whole = estimate(run, weights.prior())
    for shares in (by_block(run, weights.prior()), by_function(run, weights.prior())):
        assert sum(one.cycles for one in shares) == pytest.approx(whole.cycles)
        assert shares[0].function == "g"
        assert shares[0].bound == "mispredict"
    assert whole.executed == run.table.instructions
    assert np.isnan(whole.low)


def measured(seed: int, true: Sequence[float], count: int = 24) -> list[MeasuredRun]:
    random = np.random.default_rng(seed)
    runs = []
    for number in range(count):
        totals = random.lognormal(0, 1, len(QUANTITIES)) * 1e6
        cycles = float(totals @ np.array(true)) * random.normal(1, 0.01)
        instructions = round(float(totals[:2] @ np.array(true[:2])))  # in proportion
        name = f"program{number // 2}"
        runs.append(MeasuredRun(f"run{number}", name, totals, cycles, instructions))
    return runs


def test_weights_are_found_again() -> None:
    true = [0.9, 0.4, 0.3, 1.1, 0.4, 0.3, 0.5, 0.9, 0.5, 0.2, 0.9]
    fitted = weights.fit(measured(1, true, 60), "bound", "a machine")
    assert fitted.array() == pytest.approx(true, rel=0.4)  # drawn to the prior
    assert fitted.error is not None
    assert fitted.error < 0.03  # the noise is 0.01
    assert fitted.ratio_error < 0.04
    assert len(fitted.runs) == 60


def test_the_error_of_ratios_is_that_of_comparisons() -> None:
    runs = measured(1, [1.0] * len(QUANTITIES))
    pair = [replace(run, group="pair", instructions=10**6, cycles=1e6) for run in runs[:2]]
    for run, priced in zip(pair, (1e6, 1.3e6), strict=True):  # cut into other blocks
        run.totals[:] = 0
        run.totals[0] = priced
    others = [replace(run, group=run.name) for run in runs[2:]]
    assert weights.fit([*pair, *others], "bound", "a machine").ratio_error == 0


def test_weights_of_nothing_are_refused() -> None:
    run = quantities(run_of([block(0, 10)], []), open_model("bound"), MACHINE)
    nothing = weights.Weights(dict.fromkeys(QUANTITIES, 0.0))
    with pytest.raises(EventsError, match="no cycles"):
        estimate(run, nothing)


def test_what_no_run_has_keeps_its_prior() -> None:
    runs = measured(2, list(weights.PRIOR.values()))
    never = QUANTITIES.index("tlb")
    for run in runs:
        run.totals[never] = 0.0
    assert weights.fit(runs, "", "").values["tlb"] == pytest.approx(weights.PRIOR["tlb"])


def test_too_few_programs_are_no_fit() -> None:
    with pytest.raises(WeightsError, match="three or more"):
        weights.fit(measured(1, list(weights.PRIOR.values()), 4), "", "")


def test_weights_on_disk(tmp_path: Path) -> None:
    fitted = weights.fit(measured(3, list(weights.PRIOR.values())), "shipped", "a machine")
    weights.save(fitted, tmp_path / "weights.json")
    assert weights.load(tmp_path / "weights.json") == fitted
    assert set(weights.packaged().values) == set(QUANTITIES)


def test_penalties_on_disk(tmp_path: Path) -> None:
    penalties.save(MACHINE, tmp_path / "here.json")
    assert penalties.load(tmp_path / "here.json") == MACHINE
    assert penalties.named(str(tmp_path / "here.json")) == MACHINE
    for machine, path in penalties.packaged().items():
        found = penalties.load(path)
        assert found.machine == machine
        assert found.l1 < found.l2 < found.llc < found.memory
    with pytest.raises(PenaltiesError, match="costmodel penalties"):
        penalties.named("no such machine")


@pytest.mark.parametrize("load", [penalties.load, weights.load])
@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": 1}', '{"format": 2}', "[" * 5000, "null", "\x00"]
)
def test_other_files_are_refused(load: object, text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    assert callable(load)
    with pytest.raises(NestorError) as error:
        load(tmp_path / "file")
    assert "\n" not in str(error.value)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.dictionaries(st.sampled_from(["format", *Penalties.__dataclass_fields__]), st.one_of(
    st.none(), st.integers(-1, 2), st.floats(), st.text(max_size=3), st.lists(st.none())
)))  # fmt: skip
def test_any_values_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("penalties") / "file"
    usual = json.loads(next(iter(penalties.packaged().values())).read_text())
    path.write_text(json.dumps(usual | values))
    try:
        found = penalties.load(path)
    except PenaltiesError as error:
        assert "\n" not in str(error)
    else:
        assert 0 <= found.mispredict < 1e5


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [
        ((90, 90), (100, 100), "faster"),
        ((110, 101), (100, 100), "slower"),
        ((98, 90), (100, 100), "too close to tell"),
        ((90, 101), (100, 100), "disagree"),
        ((90, float("nan")), (100, 100), "faster"),
    ],
)
def test_two_builds(own: tuple[float, float], other: tuple[float, float], verdict: str) -> None:
    run = quantities(run_of([block(0, 100)], []), open_model("bound"), MACHINE)
    base = estimate(run, weights.prior())
    nothing = dict.fromkeys(QUANTITIES, 0.0)
    a, b = (
        replace(base, by_quantity=nothing | {"mispredict": cycles}, executed=j)
        for cycles, j in (own, other)
    )
    fitted = Weights(weights.PRIOR, ratio_error=0.03)
    assert compare(a, b, fitted).verdict == verdict


def test_blocks_of_two_builds_are_compared_by_their_instructions() -> None:
    run = quantities(run_of([block(0, 100)], []), open_model("bound"), MACHINE)
    base = estimate(run, weights.prior())
    values = dict.fromkeys(QUANTITIES, 0.0) | {"compute": 60.0, "mispredict": 40.0}
    other = replace(base, by_quantity=values, instructions=200, executed=200.0)
    more = replace(other, by_quantity=values | {"compute": 999.0}, instructions=220)
    assert compare(more, other, Weights(weights.PRIOR)).ratio == pytest.approx(1.06)


def test_events_that_a_source_lacks_cost_nothing() -> None:
    table = run_of([block(0, 100, l1_misses=10)], [])
    blocks = table.blocks
    for name in EVENTS:
        if name != "l1_misses":
            place = blocks.schema.get_field_index(name)
            blocks = blocks.set_column(place, BLOCKS.field(name), pa.nulls(1, pa.int64()))
    run = quantities(replace(table, blocks=blocks), open_model("bound"), MACHINE)
    assert run.columns["l2"].sum() == 10 * 50  # two levels: a miss of the first hits the last
    assert run.columns["mispredict"].sum() == 0
    assert np.isnan(estimate(run, weights.prior()).executed)
