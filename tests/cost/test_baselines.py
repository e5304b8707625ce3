"""The baselines: right on blocks of certain cost, learnable, resumable, safe to load."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from nestor.cost import conformal
from nestor.cost.baselines import bound, granite, lstm, network, rescaled, training
from nestor.cost.baselines.bound import BoundModel, Form
from nestor.cost.baselines.mca import McaModel
from nestor.cost.baselines.network import NetworkKind, batches
from nestor.cost.baselines.training import NetworkSettings
from nestor.cost.blocks import table
from nestor.cost.blocks.table import Table
from nestor.cost.contract import CostModel, ModelError
from nestor.cost.isa.decoding import decode
from nestor.cost.registry import open_model, save_baseline

SMALL = NetworkSettings(steps=10, batch=256)
networks = pytest.mark.parametrize("kind", ["lstm", "granite"])


@pytest.fixture(scope="module")
def some() -> Table:
    """A thousand blocks of the data set."""
    whole = table.named("zen5")
    return whole.select(np.random.default_rng(0).permutation(len(whole))[:1000])


# Rescaling


@given(st.lists(st.floats(-3, 5), min_size=20, max_size=200), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_curve_never_falls_and_keeps_what_is_unknown(values: list[float], seed: int) -> None:
    estimate = np.exp(np.array(values))
    cycles = estimate * np.random.default_rng(seed).uniform(0.5, 2, len(values))
    curve = rescaled.fit(estimate, cycles)
    queries = np.exp(np.linspace(-6, 8, 200))
    found = curve.rescale(np.append(queries, np.nan))
    assert np.isnan(found.cycles[-1])
    assert (np.diff(found.cycles[:-1]) >= 0).all()
    assert (found.low[:-1] <= found.high[:-1]).all()


def test_a_curve_undoes_a_rising_distortion() -> None:
    cycles = np.exp(np.random.default_rng(0).uniform(-2, 4, 5000))
    found = rescaled.fit(3 * cycles**0.7, cycles).rescale(3 * cycles**0.7)
    assert np.median(np.abs(found.cycles / cycles - 1)) < 0.02


def test_conformal_factors_hold_ninety_of_a_hundred() -> None:
    rng = np.random.default_rng(3)
    low, high = conformal.interval_factors(rng.normal(0, 0.1, 4000))
    fresh = np.exp(rng.normal(0, 0.1, 4000))
    assert 0.88 < ((low <= fresh) & (fresh <= high)).mean() < 0.92


# The bound

FORMS = {
    "ADD_RM64_R64": Form(1, 1, {"ALU0": 0.5, "ALU1": 0.5}),
    "ADD_RM64_R64 read-write": Form(6, 2, {"ALU0": 0.5, "ALU1": 0.5, "L.0": 1.0}),
    "IMUL_R64_RM64": Form(3, 1, {"ALU1": 1.0}),
    "MOV_R64_RM64 read": Form(5, 1, {"L.0": 1.0}),
    "NOPD": Form(0, 1, {}),
}


def of(code: str) -> tuple[float, float, float]:
    """Return ports, chain and front end of a block."""
    found = bound.bounds([decode(bytes.fromhex(code))], FORMS)
    return float(found.ports[0]), float(found.chain[0]), float(found.front_end[0])


def test_a_chain_is_the_sum_of_its_latencies() -> None:
    assert of("4801d8") == (0.5, 1.0, 1 / 8)  # add rax, rbx
    assert of("4801d8480fafc3")[1] == 4.0  # add rax, rbx; imul rax, rbx
    assert of("488b00")[1] == 5.0  # mov rax, [rax]
    assert of("488b03")[1] == 0.0  # mov rax, [rbx]: nothing goes round


def test_two_chains_run_side_by_side() -> None:
    assert of("4801d84801d9")[1] == 1.0  # add rax, rbx; add rcx, rbx


def test_ports_that_only_some_can_use_bind_first() -> None:
    # Two multiplications need ALU1 twice; an addition more goes to ALU0.
    assert of("480fafc3480fafcb")[0] == 2.0
    assert of("480fafc3480fafcb4801da")[0] == 2.0
    assert of("480fafc34801da4801de4801df")[0] == 2.0  # four on two ports


def test_the_front_end_is_the_last_resort() -> None:
    assert of("0f1f00" * 16) == (0.0, 0.0, 2.0)


def test_the_bound_has_no_word_for_what_is_no_code() -> None:
    found = BoundModel(FORMS).predict([b"\x06", b"", bytes.fromhex("4801d8")])
    assert np.isnan(found.cycles).tolist() == [True, True, False]


# The networks


def test_the_lstm_reads_data_flow_but_no_constants() -> None:
    blocks = [decode(bytes.fromhex(code)) for code in ("4883c001", "4883c002", "4883c101")]
    words = lstm.words_of(blocks * 5)
    encoded = lstm.encode(blocks, words)
    assert encoded.instructions.tolist() == [0, 0, 1]
    assert encoded.words.shape == (2, lstm.LONGEST)


def test_a_graph_links_what_is_written_to_what_reads_it() -> None:
    block = decode(bytes.fromhex("4801d8488b0c18"))  # add rax, rbx; mov rcx, [rax+rbx]
    encoded = granite.encode([block], granite.words_of([block] * 5))
    edges = {tuple(edge) for edge in encoded.edges.tolist()}
    first, second = encoded.operations.tolist()
    written = {target for source, target, kind in edges if source == first and kind == 2}
    bases = {source for source, _, kind in edges if kind == 3}
    assert bases <= written, "the base of the load is the sum"
    assert (first, second, 0) in edges


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(300, 5000))
def test_batches_hold_every_row_once_within_the_limit(costs: list[int], limit: int) -> None:
    order = np.argsort(costs)
    found = list(batches(np.array(costs), order, limit))
    assert np.concatenate(found).tolist() == order.tolist()
    assert all(max(costs[i] for i in rows) * len(rows) <= limit for rows in found)


@networks
def test_a_network_learns(kind: NetworkKind, some: Table) -> None:
    rows = np.flatnonzero(some.stable)
    model = training.train(kind, some, rows, NetworkSettings(steps=60, batch=512))
    measured = np.log(some.cycles[rows])
    error = np.abs(np.log(model.predict(some.select(rows).blocks).cycles) - measured).mean()
    assert error < 0.6 * np.abs(measured - np.median(measured)).mean()


@networks
def test_batching_does_not_change_an_answer(kind: NetworkKind, some: Table) -> None:
    model = training.train(kind, some, np.arange(200), SMALL)
    together = model.predict([*some.blocks[:50], b"\x06"])
    apart = [model.predict([block]).cycles[0] for block in some.blocks[:5]]
    assert together.cycles[:5] == pytest.approx(apart, rel=1e-4)
    assert np.isnan(together.cycles[-1])
    assert (together.low[:-1] < together.high[:-1]).all()


@networks
def test_a_killed_training_goes_on(kind: NetworkKind, some: Table, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    steps = itertools.count(1)

    def kill(_stage: str, _done: int, _total: int) -> None:
        if next(steps) == 7:
            raise KilledError

    checkpoint = tmp_path / "run.checkpoint"
    rows = np.arange(200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_SAVE_SECONDS", 0.0)
        with pytest.raises(KilledError):
            training.train(kind, some, rows, SMALL, 1, checkpoint, kill)
    assert checkpoint.exists()
    with pytest.raises(ModelError, match="another --out"):
        training.train(kind, some, rows, SMALL, 2, checkpoint)
    resumed = training.train(kind, some, rows, SMALL, 1, checkpoint)
    assert not checkpoint.exists()
    whole = training.train(kind, some, rows, SMALL, 1)
    queries = some.blocks[:40]
    assert resumed.predict(queries).cycles == pytest.approx(whole.predict(queries).cycles, rel=1e-5)


def test_a_gpu_is_used_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda found=found: found)
        assert network.device().type == kind


def test_a_graph_goes_where_its_network_is(some: Table) -> None:
    """The device "meta", which computes shapes alone, stands for a GPU: mixing them is an error."""
    blocks = [decode(block) for block in some.blocks[:20]]
    words = granite.words_of(blocks)
    there = granite.Network(len(words), granite.Sizes()).to("meta")
    answers = network.answers(there, granite.encode(blocks, words), np.arange(20))
    assert (answers.device.type, answers.shape) == ("meta", (20,))


def test_too_few_rows_are_refused(some: Table) -> None:
    with pytest.raises(ModelError, match="too few"):
        training.train("lstm", some, np.arange(5), SMALL)


# Files


def test_every_kind_of_file_gives_the_model_back(some: Table, tmp_path: Path) -> None:
    curve = rescaled.fit(np.arange(1, 100.0), np.arange(1, 100.0) ** 1.1)
    models: list[CostModel] = [McaModel(curve), BoundModel(FORMS, curve), BoundModel(FORMS)]
    models += [training.train(k, some, np.arange(100), SMALL) for k in ("lstm", "granite")]
    for model in models:
        path = tmp_path / "model.safetensors"
        save_baseline(model, path)
        again = open_model(path)
        assert type(again) is type(model)
        first, second = (m.predict(some.blocks[:20]) for m in (model, again))
        for name in ("cycles", "low", "high"):
            assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)


CURVE = {"estimated": np.array([0.0, 1.0]), "measured": np.array([0.0, 1.0])}


@pytest.mark.parametrize(
    "description",
    [
        {"kind": "bound"},
        {"kind": "bound", "forms": {"ADD": [1]}},
        {"kind": "bound", "forms": {"ADD": [1, float("inf"), {}]}},
        {"kind": "bound", "forms": []},
        {"kind": "llvm-mca"},
        {"kind": "llvm-mca", "cpu": "znver5"},
        {"kind": "lstm"},
        {"kind": "lstm", "sizes": {"embedding": 10**9, "hidden": 4}, "words": []},
        {"kind": "lstm", "sizes": {"embedding": 4, "hidden": 4}, "words": [], "low": 1, "high": 1},
        {"kind": "granite", "sizes": {"embedding": 4}, "words": []},
        {"kind": "oracle"},
        {},
    ],
)
def test_a_damaged_file_is_refused(description: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(CURVE, path, metadata={"baseline": json.dumps(description)})
    with pytest.raises(ModelError, match="train it again"):
        open_model(path)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_baseline(BoundModel(FORMS), path)
    content = path.read_bytes()
    for size in (0, 7, 20, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError):
            open_model(path)


def test_the_architectures_are_those_of_the_files() -> None:
    assert {module.KIND for module in network.ARCHITECTURES.values()} == {"lstm", "granite"}
