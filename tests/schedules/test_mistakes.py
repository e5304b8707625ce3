"""What users get wrong ends in one sentence with a place or a remedy, and no traceback."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.errors import NestorError
from nestor.schedules.compiling import compile as compile_payload
from nestor.schedules.payload import operators as texts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with sound and damaged files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    product = texts.matmul(16, 24, 8)
    files = {
        "matmul.mlir": product,
        "sums.mlir": texts.row_sums(4, 8),
        "typo.mlir": product.replace("linalg.fill", "linalg.fil"),
        "dynamic.mlir": product.replace("tensor<16x8xf32>", "tensor<?x8xf32>"),
        "cut.mlir": product[:120],
        "empty.mlir": "",
        "two.mlir": "func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {return %x : tensor<4xf32>}\n"
        "func.func @b(%x: tensor<4xf32>) { return }\n",
        "text.sqlite": "no database " * 100,
        "open.mlir": "module attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n"
        '%k = transform.tune.knob<"size"> options = [1] -> !transform.param<i64>\n'
        "transform.yield\n}\n}\n",
        "bracket.mlir": "\nmodule attributes {transform.with_named_sequence} {\n"
        "transform.named_sequence @mine(%m: !transform.any_op {transform.readonly}) {\n"
        "transform.include @cleanupp failures(propagate) (%m) : (!transform.any_op) -> ()\n"
        "transform.yield\n}\n",
    }
    files["missing.mlir"] = files["bracket.mlir"] + "}\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


PAYLOAD_MISTAKES = {
    "absent.mlir": "absent.mlir cannot be read as a payload: No such file",
    "typo.mlir": "typo.mlir:4: error: custom op 'linalg.fil' is unknown",
    "dynamic.mlir": "dynamic.mlir:1: 'tensor<?x8xf32>' has a size that is not fixed: write",
    "cut.mlir": "cut.mlir:2: error: ",
    "empty.mlir": "empty.mlir has no public function: ",
    "two.mlir": "two.mlir has several public functions, a, b: name one (--function)",
    "two.mlir --function b": "two.mlir:2: 'b' returns nothing",
    "two.mlir --function c": "has no function 'c'; it has a, b",
    ".": "it is a folder",
}
MISTAKES = {
    "list absent.mlir": "There is no schedule at absent.mlir",
    "list matmul.mlir": "matmul.mlir defines no schedule: ",
    "check empty.mlir": "empty.mlir defines no schedule: ",
    "check bracket.mlir": "bracket.mlir:2: a bracket that opens here does not close",
    "graph matmull": "no schedule 'matmull' (is 'matmul' meant?)",
    "graph matmul --out .": ". is a folder: name a file to write",
    "apply matmul.mlir --choice tile_mm=4": "no decision 'tile_mm' (is 'tile_m' meant?)",
    "apply matmul.mlir --target neno": "no target 'neno' (is 'neon' meant?)",
    "apply matmul.mlir --print-after bufferise": "is no step of 'matmul' (is 'bufferize' meant?)",
    "apply matmul.mlir --library missing.mlir --schedule mine":
        "missing.mlir:4: there is no sequence 'cleanupp' to include (is 'cleanup' meant?)",
    "apply matmul.mlir --schedule pack_panel": "'pack_panel' is a step, no whole schedule",
    "apply matmul.mlir --resolved .": ". is a folder: name a file to write",
    "run matmul.mlir --target neon": "cannot run kernels for 'neon': its processor is",
    "run matmul.mlir --rounds -1": "--rounds is 0 or more, not -1",
    "run matmul.mlir --threads 0": "--threads is 1 or more, not 0",
    "run matmul.mlir --seed -1": "--seed is 0 or more, not -1",
    "run matmul.mlir --core 9999": "--core is one of 0 to ",
    "tune matmul.mlir --out .": ". is a folder: name a file to write",
    "tune matmul.mlir --out t.mlir --evaluations 0": "--evaluations and --rounds are 1 or more",
    "tune matmul.mlir --out t.mlir --database text.sqlite": "text.sqlite cannot be used",
    "tune matmul.mlir --out t.mlir --target neon": "cannot run kernels for 'neon'",
    "tune matmul.mlir --out t.mlir --schedule plain": "'plain' leaves nothing to decide",
    "tune matmul.mlir --out t.mlir --policy absent": "absent cannot be read as a policy",
    "train --out p.safetensors --database absent.sqlite": "no database of results at absent.sqlite",
    "train --out p.safetensors --database text.sqlite": "text.sqlite cannot be used",
    "train --out p.safetensors": "'nestor schedule tune' makes one",
    "replay matmul.mlir absent.mlir": "absent.mlir cannot be read as a resolved schedule",
    "replay matmul.mlir matmul.mlir": "matmul.mlir is no resolved schedule: ",
    "replay matmul.mlir open.mlir": "open.mlir:3: this decision is open",
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [(f"{verb} {words}{more}", message)
     for words, message in PAYLOAD_MISTAKES.items()
     for verb, more in (("apply", ""), ("run", ""), ("tune", " --out t.mlir"))]
    + list(MISTAKES.items()),
)  # fmt: skip
def test_a_mistake_is_one_sentence(
    line: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", *line.split()]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nestor: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (folder / "t.mlir").exists()
    assert not (folder / "absent.sqlite").exists()


def test_a_schedule_of_another_payload_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = folder / "other.mlir"
    other.write_text(texts.row_sums(6, 12))
    words = ["--evaluations", "1", "--rounds", "1", "--out", "t.mlir"]
    assert main(["schedule", "tune", "sums.mlir", *words]) == 0
    capsys.readouterr()
    for payload, told in (("sums.mlir", False), ("other.mlir", True)):
        assert main(["schedule", "replay", payload, "t.mlir", "--rounds", "0"]) == 0
        assert ("was tuned for another payload" in capsys.readouterr().err) == told
    words = ["--resolved", "product.mlir", "--out", "out.mlir"]
    assert main(["schedule", "apply", "matmul.mlir", *words]) == 0
    assert main(["schedule", "replay", "sums.mlir", "product.mlir", "--rounds", "0"]) == 1
    assert "product.mlir:" in capsys.readouterr().err


def test_a_read_only_database_is_refused_before_any_work(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--evaluations", "8", "--rounds", "1", "--out", "t.mlir", "--database", "r.sqlite"]
    assert main(["schedule", "tune", "sums.mlir", "--search", "random", *words]) == 0
    database = folder / "r.sqlite"
    database.chmod(0o444)
    # The super-user may write whatever the mode says.
    attribute = ["chattr", "+i", str(database)]
    if os.access(database, os.W_OK) and subprocess.run(attribute, capture_output=True).returncode:
        pytest.skip("a super-user on a file system without immutable files")
    try:
        capsys.readouterr()
        assert main(["schedule", "tune", "sums.mlir", *words]) == 1
        assert "r.sqlite or its folder is read-only" in capsys.readouterr().err
        words = ["--database", "r.sqlite", "--out", "p.safetensors", "--json"]
        assert main(["schedule", "train", *words]) == 0  # which only reads it
        assert json.loads(capsys.readouterr().out)["provenance"]["payloads"] == 1
    finally:
        subprocess.run(["chattr", "-i", str(database)], capture_output=True)
        database.chmod(0o644)


def test_mistakes_in_python(folder: Path) -> None:
    text = texts.matmul(16, 24, 8)
    with pytest.raises(NestorError, match=r"file is named by Path\('matmul.mlir'\)"):
        compile_payload("matmul.mlir")
    with pytest.raises(NestorError, match=r"no decision 'reg_mm' \(is 'reg_m' meant\?\)"):
        compile_payload(text, choice={"reg_mm": 4})
    with pytest.raises(NestorError, match=r"no schedule 'matmull' \(is 'matmul' meant\?\)"):
        compile_payload(text, "matmull")
    with pytest.raises(NestorError, match="cannot run kernels for 'neon'"):
        compile_payload(text, target="neon")


def test_every_verb_has_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned = ["--evaluations", "8", "--rounds", "1", "--search", "random", "--out", "t.mlir"]
    for words, key in (
        (["list"], None), (["check"], "sequences"), (["graph"], "sharing"),
        (["apply", "sums.mlir"], "module"), (["run", "sums.mlir", "--rounds", "1"], "seconds"),
        (["tune", "sums.mlir", *tuned], "history"),
        (["replay", "sums.mlir", "t.mlir", "--rounds", "1"], "verdict"),
        (["train", "--out", "p.safetensors"], "provenance"),
    ):  # fmt: skip
        assert main(["schedule", *words, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert key is None or result[key]
