"""Opcodes that training lacks: their costs from another machine, and how sure the answers are."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from nestor.cli.main import main
from nestor.cost.blocks.table import Table, named
from nestor.cost.conformal import weighted_interval_factors
from nestor.cost.core.parameters import CoreParameters, MachineSettings, starting_forms
from nestor.cost.core.simulator import Simulator
from nestor.cost.core.slow_forms import with_slow_forms
from nestor.cost.isa.decoding import decode
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.model_file import load
from nestor.cost.model.trained_forms import TrainedForms, as_in_manuals
from nestor.cost.training.settings import TrainingSettings
from nestor.cost.training.train import train

SMALL = TrainingSettings(passes=1, trees=40, leaves=15, learning_rate=0.2, threads=1)
PDEP_CHAIN = bytes.fromhex("c462bbf5c0")  # pdep r8, r8, rax
FSIN = bytes.fromhex("d9e8d9feddd8")  # fld1; fsin; fstp st0
GATHER = bytes.fromhex("c4411176edc42211922437")  # vpcmpeqd; vgatherdps xmm12, [rdi+xmm14], xmm13


@pytest.fixture(scope="module")
def held_out() -> tuple[Table, HybridModel]:
    """Rows with rotations and shifts by cl, and a model that saw none, but those of Zen 4."""
    rows = named("zen5")
    some = np.random.default_rng(0).permutation(np.flatnonzero(rows.stable))[:9000]
    rows = rows.select(some)
    names = ("ror", "rol", "bswap", "cmovs", "sbb", "imul", "mulsd", "addsd")

    def has_one(table: Table) -> NDArray[np.bool_]:
        return np.array([any(i.mnemonic in names for i in decode(b)) for b in table.blocks])

    has, sweep = has_one(rows), named("zen4-sweep")
    sweep = sweep.select(has_one(sweep) | (np.random.default_rng(0).random(len(sweep)) < 0.2))
    model = train(rows, np.flatnonzero(~has)[:2000], SMALL, borrowed=sweep)
    return rows.select(has), model


def test_intervals_hold_on_opcodes_that_were_held_out(
    held_out: tuple[Table, HybridModel],
) -> None:
    rows, model = held_out
    found = model.predict(rows.blocks)
    answered = np.isfinite(found.cycles)
    assert answered.sum() > 100
    inside = (found.low <= rows.cycles) & (rows.cycles <= found.high)
    assert inside[answered].mean() >= 0.85
    as_trained = TrainedForms(model.part.opcodes.trained | model.part.opcodes.borrowed, frozenset())
    parts = replace(model.parts, machines=(replace(model.part, opcodes=as_trained),))
    before = HybridModel(parts).predict(rows.blocks)
    sure = (before.low <= rows.cycles) & (rows.cycles <= before.high)
    assert sure[answered].mean() < inside[answered].mean()


def test_the_answer_names_them_and_is_less_sure(held_out: tuple[Table, HybridModel]) -> None:
    _, model = held_out
    found = model.predict([bytes.fromhex("480fafc1"), bytes.fromhex("4801c8")])
    assert found.untrained == {0: ("IMUL r64, r/m64",)}
    ratio = found.high / found.low
    assert ratio[0] > ratio[1]


@pytest.mark.parametrize(
    ("block", "name", "cycles"),
    [
        (PDEP_CHAIN, "PDEP r64a, r64b, r/m64", 3.0),
        (FSIN, "FSIN", 35.0),
        (GATHER, "VGATHERDPS xmm1, vm32x, xmm2", 5.0),
    ],
)
def test_the_shipped_model_is_no_longer_sure_of_what_it_never_saw(
    block: bytes, name: str, cycles: float
) -> None:
    found = load("shipped").predict([block])
    assert found.untrained[0][-1] == name
    assert found.low[0] < cycles < found.high[0]
    assert found.high[0] / found.low[0] > 2


def test_the_command_names_them_in_text_json_and_sums(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["costmodel", "predict", "--json"]
    assert main([*words, PDEP_CHAIN.hex()]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["blocks"][0]["not_in_training"] == ["PDEP r64a, r64b, r/m64"]
    assert main([*words, "--assembly", "pdep %rax, %rbx, %rbx"]) == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    assert function["not_in_training"] == ["PDEP r64a, r64b, r/m64"]
    assert main(["costmodel", "predict", PDEP_CHAIN.hex()]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "opcode not in training: PDEP r64a, r64b, r/m64" in text


def test_without_a_table_to_borrow_from_there_is_no_answer() -> None:
    rows = named("zen5")
    few = np.flatnonzero(rows.stable)[:600]
    found = train(rows, few, SMALL).predict([PDEP_CHAIN, bytes.fromhex("4801c8")])
    assert np.isnan(found.cycles[0]) and np.isfinite(found.cycles[1])
    assert "not in training" in found.refused[0]


def test_opcodes_with_and_without_memory_are_one_and_prefixes_make_others() -> None:
    known = TrainedForms(frozenset({"ADD_RM64_R64"}), frozenset({"ADD_RM64_R64 lock"}))
    forms = ["ADD_RM64_R64", "ADD_RM64_R64 mem", "ADD_RM64_R64 mem lock", "CPUID", "FSIN"]
    assert known.statuses(forms).tolist() == [1, 1, 3, 2, 0]
    assert known.untrained(bytes.fromhex("f0480118 480118")) == ("lock ADD r/m64, r64",)
    assert known.unmeasured(bytes.fromhex("f0480118 d9fe d9fe")) == ("FSIN",)
    assert as_in_manuals("MOVSB_M8_M8 rep").startswith("rep MOVSB")


def test_slow_instructions_get_as_many_slots_as_their_labels_say() -> None:
    rdtsc, add = bytes.fromhex("0f31"), bytes.fromhex("4801c8")
    simulator = Simulator()
    kept = np.flatnonzero(simulator.keep([rdtsc, add, add + rdtsc]))
    core = CoreParameters(MachineSettings(), starting_forms(simulator.templates.categories()))
    cycles = np.array([35.0, 1.0, 36.0])
    found = with_slow_forms(simulator, core, kept, cycles, fewest=2)
    simulator.set_core(found)
    np.testing.assert_allclose(simulator.rates(kept)[[0, 2]], [35, 35], rtol=0.05)
    assert (found.forms[simulator.forms(1)] == core.forms[simulator.forms(1)]).all()


@pytest.mark.parametrize("groups", [30, 200])
def test_each_group_counts_alike_in_the_factors(groups: int) -> None:
    generator = np.random.default_rng(groups)
    sizes = generator.integers(1, 50, groups)
    errors = np.repeat(generator.normal(size=groups), sizes)
    low, high = weighted_interval_factors(errors, np.repeat(1 / sizes, sizes))
    fresh = np.exp(generator.normal(size=20_000))
    inside = (low <= fresh) & (fresh <= high)
    assert inside.mean() >= 0.85
    assert groups < 100 or inside.mean() < 0.96
