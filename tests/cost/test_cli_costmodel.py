"""``nestor costmodel`` as its users meet it: what it prints, and what it says of nonsense."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.blocks import table
from nestor.cost.llvm_tools.machine_code import assemble

FUNCTIONS = """
    .globl chain, loads
    .type chain, @function
chain:
    imulq %rbx, %rax
    jne chain
    addq %rbx, %rax
    ret
    .size chain, .-chain
    .type loads, @function
loads:
    movq (%rdi), %rax
    movq 8(%rdi), %rcx
    ret
    .size loads, .-loads
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hundred rows of the data set."""
    whole = table.named("zen5")
    path = tmp_path_factory.mktemp("tables") / "some.parquet"
    table.write(whole.select(np.random.default_rng(1).permutation(len(whole))[:400]), path)
    return path


@pytest.fixture(scope="module")
def bound(measured: Path) -> Path:
    """The bound, trained on them."""
    path = measured.with_name("bound.safetensors")
    words = ["--kind", "bound", "--blocks", str(measured), "--out", str(path), "--json"]
    assert main(["costmodel", "train", *words]) == 0
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that must succeed and give back what it printed as JSON."""

    def run(*words: str) -> Any:
        assert main(["costmodel", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one sentence that a command fails with."""
    capsys.readouterr()
    assert main(["costmodel", *words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return " ".join(said.err.split())


def test_training_reports_the_held_out_rows(run: Any, measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = ("train", "--kind", "bound", "--blocks", str(measured), "--out", str(out))
    found = run(*words, "--split", "sequence-disjoint", "--test", "0.3", "--seed", "3")
    test = found["test"]["AMD Zen 5"]
    assert test["n"] + test["failed"] <= 120
    assert found["trained_on"] <= 400 - test["n"]
    assert test["stable_only"]["mape"] < 60
    assert out.exists()
    assert run(*words, "--split", "none")["test"] == {}


@pytest.mark.parametrize("kind", ["lstm", "granite", "llvm-mca"])
def test_every_baseline_trains_and_evaluates(
    kind: str, run: Any, measured: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.safetensors"
    words = ("--kind", kind, "--blocks", str(measured), "--out", str(out), "--minutes", "0.01")
    trained = run("train", *words)
    found = run("evaluate", "--model", str(out), "--blocks", str(measured))
    assert found["n"] + found["failed"] == 400
    assert trained["test"]["AMD Zen 5"]["n"] < found["n"]


def test_the_evaluation_is_the_documented_object(run: Any, bound: Path, measured: Path) -> None:
    found = run("evaluate", "--model", str(bound), "--blocks", str(measured))
    numbers = {"n", "mape", "median_ape", "kendall", "spearman"}
    assert numbers | {"blocks_per_second", "stable_only"} <= set(found)
    assert set(found["stable_only"]) == numbers
    assert found["stable_only"]["n"] < found["n"] <= 400
    assert 1 < found["stable_only"]["mape"] < 100, "in per cent"
    assert found["blocks_per_second"] > 0
    again = run("evaluate", "--model", str(bound), "--blocks", str(measured))
    for result in (found, again):
        result.pop("blocks_per_second")
    assert found == again


def test_models_by_name_need_no_training(run: Any, measured: Path) -> None:
    found = run("evaluate", "--model", "bound", "--blocks", str(measured))
    assert found["coverage"] == {"share": None, "width": None}
    assert found["n"] > 300


def test_the_rows_of_one_machine(
    run: Any, bound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.parquet"
    columns = {
        "block_hex": ["4801d8", "4801d8", "480fafc3"],
        "cycles": [1.0, 4.0, 3.0],
        "spread": [0.0] * 3,
        "machine": ["new", "old", "new"],
    }
    pq.write_table(pa.table(columns), path)
    words = ("evaluate", "--model", str(bound), "--blocks", str(path))
    assert [run(*words, "--machine", name)["n"] for name in ("new", "old")] == [2, 1]
    assert "it has new, old" in refusal(capsys, *words, "--machine", "other")


def test_the_table_for_people(
    bound: Path, measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["costmodel", "evaluate", "--model", str(bound), "--blocks", str(measured)]) == 0
    text = capsys.readouterr().out
    assert "stable" in text
    assert "the worst:" in text
    assert "blocks per CPU-second" in text


HOSTILE: dict[str, tuple[dict[str, list[Any]], str]] = {
    "no column of blocks": ({"cycles": [1.0]}, "has no column block_hex"),
    "no labels": ({"block_hex": ["90"]}, "No row has a number of cycles"),
    "only unknown labels": (
        {"block_hex": ["90"], "cycles": [float("nan")], "spread": [0.0]},
        "No row has a number of cycles",
    ),
    "no cycles": ({"block_hex": ["90"], "cycles": [0.0], "spread": [0.0]}, "says 0 for cycles"),
    "endless": ({"block_hex": ["90"], "cycles": [float("inf")]}, "says inf for cycles"),
    "negative": ({"block_hex": ["90"], "cycles": [-1.0]}, "says -1 for cycles"),
    "no hexadecimal": ({"block_hex": ["xyz"], "cycles": [1.0]}, "in row 0"),
    "an empty block": ({"block_hex": [""], "cycles": [1.0]}, "in row 0"),
    "words for cycles": ({"block_hex": ["90"], "cycles": ["fast"]}, "cycles"),
    "no rows": ({"block_hex": [], "cycles": [], "spread": []}, ""),
    "no block": ({"block_hex": ["06"], "cycles": [1.0], "spread": [0.0]}, "answers none"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_give_one_sentence(
    name: str, bound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, expected = HOSTILE[name]
    path = tmp_path / "hostile.parquet"
    pq.write_table(pa.table(columns), path)
    said = refusal(capsys, "evaluate", "--model", str(bound), "--blocks", str(path), "--json")
    assert expected in said


def test_rows_that_cannot_be_answered_are_counted(run: Any, bound: Path, tmp_path: Path) -> None:
    path = tmp_path / "mixed.parquet"
    columns = {
        "block_hex": ["4801d8", "06", "480fafc3", "90"],
        "cycles": [1.0, 1.0, 3.0, None],
        "spread": [0.0, 0.0, None, 0.0],
    }
    pq.write_table(pa.table(columns), path)
    found = run("evaluate", "--model", str(bound), "--blocks", str(path))
    assert (found["n"], found["failed"], found["unlabelled"]) == (2, 1, 1)
    assert found["stable_only"]["n"] == 1
    assert found["stable_only"]["kendall"] is None


def test_models_and_tables_that_are_none(
    bound: Path, measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"\xff" * 100)
    said = refusal(capsys, "evaluate", "--model", "nonsense", "--blocks", str(measured))
    assert "shipped, llvm-mca and bound" in said
    assert refusal(capsys, "evaluate", "--model", str(noise), "--blocks", str(measured))
    assert refusal(capsys, "evaluate", "--model", str(bound), "--blocks", str(noise))
    assert refusal(capsys, "evaluate", "--model", str(bound), "--blocks", "nowhere.parquet")


def test_a_place_for_no_file_is_refused_before_the_training(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for place, why in ((tmp_path, "is a folder"), (tmp_path / "file" / "m", "is a file")):
        words = ("--kind", "own", "--blocks", str(measured), "--out", str(place))
        assert why in refusal(capsys, "train", *words)


def test_predicting_hexadecimal(run: Any, bound: Path) -> None:
    found = run("predict", "--model", str(bound), "0x4801d8", "06", "48 0f af c3")
    first, second, third = found["blocks"]
    assert first["low"] < first["cycles"] < first["high"] or first["cycles"] > 0
    assert (second["cycles"], second["low"], second["high"]) == (None, None, None)
    assert "cannot be decoded" in second["reason"]
    assert first["reason"] is None
    assert third["block_hex"] == "480fafc3"
    assert third["cycles"] > first["cycles"]


def test_predicting_a_text_and_standard_input(
    run: Any, bound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# two blocks\n4801d8  # an addition\n\n480fafc3\n"
    path = tmp_path / "blocks.txt"
    path.write_text(text)
    named = run("predict", "--model", str(bound), str(path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run("predict", "--model", str(bound)) == named
    assert len(named["blocks"]) == 2


def test_a_function_is_the_sum_of_frequency_times_cycles(
    run: Any, bound: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    out = tmp_path / "code.o"
    assemble(toolchain, FUNCTIONS, out)
    counts = tmp_path / "counts.csv"
    counts.write_text("function,block,count\nchain,0,10\nchain,1,2.5\n")
    words = ("predict", "--model", str(bound), str(out), "--list-blocks")
    once = {f["function"]: f for f in run(*words)["functions"]}
    assert set(once) == {"chain", "loads"}
    assert [b["block_hex"] for b in once["chain"]["block_list"]] == ["480fafc3", "4801d8"]
    costs = [block["cycles"] for block in once["chain"]["block_list"]]
    assert once["chain"]["cycles"] == pytest.approx(sum(costs))
    often = {f["function"]: f for f in run(*words, "--frequencies", str(counts))["functions"]}
    assert often["chain"]["cycles"] == pytest.approx(10 * costs[0] + 2.5 * costs[1])
    assert often["loads"]["cycles"] == 0
    source = tmp_path / "code.s"
    source.write_text(FUNCTIONS)
    from_source = {f["function"]: f for f in run(*words[:-2], str(source))["functions"]}
    assert from_source["chain"]["cycles"] == once["chain"]["cycles"]


def test_predicting_assembly(run: Any, bound: Path) -> None:
    words = ("predict", "--model", str(bound), "--list-blocks", "--assembly")
    (found,) = run(*words, "addq %rbx, %rax; imulq %rbx, %rax")["functions"]
    assert [block["block_hex"] for block in found["block_list"]] == ["4801d8480fafc3"]
    (same,) = run(*words, "add rax, rbx\nimul rax, rbx", "--intel")["functions"]
    assert same == found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("zz",), "neither a file nor machine code"),
        (("9",), "neither a file nor machine code"),
        (("90", "--assembly", "nop"), "not both"),
        (("--assembly", "hello world"), "cannot read this as x86-64 assembly"),
        (("--assembly", "# nothing"), "no block"),
        (("90", "--frequencies", "nowhere.csv"), "cannot be read as frequencies"),
    ],
)
def test_nonsense_to_predict_gives_one_sentence(
    words: tuple[str, ...], expected: str, bound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refusal(capsys, "predict", "--model", str(bound), *words)


def test_a_profile_of_other_code_is_refused(
    bound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "profile.csv"
    source = tmp_path / "code.s"
    source.write_text(FUNCTIONS)
    words = ("predict", "--model", str(bound), str(source), "--frequencies", str(profile))
    profile.write_text("function,block,count\nchain,0,1\nelsewhere,0,1\n")
    assert main(["costmodel", *words]) == 0
    assert "1 of 2 blocks of the profile are not in this code" in capsys.readouterr().err
    profile.write_text("function,block,count\nelsewhere,0,1\n")
    assert "no block of this code" in refusal(capsys, *words)


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "function,block,count\nf,x,1\n", "function,block,count\nf,0,nan\n"]
)
def test_a_profile_of_another_kind_is_refused(
    text: str, bound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "profile.csv"
    path.write_text(text)
    said = refusal(capsys, "predict", "--model", str(bound), "90", "--frequencies", str(path))
    assert "function,block,count" in said


def test_only_our_own_kind_is_explained(bound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "can be explained" in refusal(capsys, "explain", "--model", str(bound), "90")


def test_the_machine_is_named(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("predict", "4801d8")
    assert (found["machine"], found["label_method"]) == ("AMD Zen 5", "rdtsc")
    (explained,) = run("explain", "4801d8")
    assert (explained["machine"], explained["label_method"]) == ("AMD Zen 5", "rdtsc")
    for command in ("predict", "explain"):
        assert main(["costmodel", command, "4801d8"]) == 0
        assert "cycles on AMD Zen 5" in " ".join(capsys.readouterr().out.split())


def test_labels_of_another_machine_are_judged_with_a_remark(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "zen4.parquet"
    table.write(table.named("zen4").select(np.arange(50)), path)
    words = ("evaluate", "--blocks", str(path), "--json")
    assert main(["costmodel", *words]) == 0
    said = capsys.readouterr()
    expected = "labels of AMD Zen 4 and a model of labels of AMD Zen 5"
    assert expected in said.err
    assert expected in json.loads(said.out)["remark"]
    table.write(table.named("zen5").select(np.arange(50)), path)
    assert run("evaluate", "--blocks", str(path))["remark"] is None


@pytest.mark.parametrize(
    "code", ["480fafc9", "4801c84801c84801c8", "4889c84889c14889c2", "50515253", "90" * 20]
)
def test_an_explanation_does_not_contradict_the_prediction(
    code: str, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = run("explain", code)
    (predicted,) = run("predict", code)["blocks"]
    assert found["cycles"] == predicted["cycles"]
    assert found["cycles"] == pytest.approx(found["simulated"] + found["learned"])
    assert all(cycles <= found["simulated"] for _, cycles in found["simulated_resources"])
    assert main(["costmodel", "explain", code]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "at least" not in text
    assert f"{found['simulated']:.2f} simulated {found['learned']:+.2f} learned" in text
