"""Payloads as torch-mlir and IREE's importer wrote them lower, run and compute what numpy does."""

import json
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.schedules.compiling import compile as compile_payload
from nestor.schedules.language.diagnosis import LoweringError
from nestor.schedules.language.text import ScheduleError
from nestor.schedules.payload.exported import with_constants
from nestor.schedules.payload.iree import without_iree
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.tools import Tools, find_tools

DATA = Path(__file__).parent / "data"
SCHEDULES = {
    "torch_mlir_dense": "matmul_elementwise", "torch_mlir_layer_norm": "rows",
    "torch_mlir_softmax": "rows", "torch_mlir_scores": "batch_matmul_elementwise",
    "iree_onnx_dense": "matmul_elementwise", "iree_onnx_layer_norm": "rows",
    "iree_torch_dense": "matmul_elementwise", "iree_abi_matmul": "matmul_elementwise",
}  # fmt: skip


@pytest.fixture(scope="module")
def tools() -> Tools:
    return find_tools()


def recorded(name: str) -> Path:
    return DATA / f"{name}.mlir"


def test_every_recorded_file_is_tested() -> None:
    assert {path.stem for path in DATA.glob("*.mlir")} == set(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_recorded_payload_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "run", str(recorded(name)), "--rounds", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["schedule"] == SCHEDULES[name]
    assert result["verdict"]["correct"]


def test_layer_norm_of_torch_is_what_torch_computes() -> None:
    import torch

    text = recorded("torch_mlir_layer_norm").read_text()
    torch.manual_seed(0)
    module = torch.nn.LayerNorm(40)
    torch.nn.init.normal_(module.weight)
    torch.nn.init.normal_(module.bias)
    x = np.random.default_rng(1).standard_normal((6, 40)).astype(np.float32)
    right = module(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(compile_payload(text)(x), right, rtol=1e-4, atol=1e-5)


def test_constants_of_exporters_have_their_values(tools: Tools) -> None:
    path = recorded("torch_mlir_dense")
    for payload in (read_payload(path, tools), read_payload(recorded("iree_torch_dense"), tools)):
        assert "dense_resource" not in payload.text
        assert payload.text.count('dense<"0x') == 2
    elided = path.read_text().partition("{-#")[0]
    with pytest.raises(ScheduleError, match="has no values that can be read: export it"):
        read_payload(elided, tools)
    with pytest.raises(ScheduleError, match="'flags' of the payload has no values"):
        text = 'dense_resource<flags> : tensor<2xi1> {-# flags: "0x0100000001" #-}'
        with_constants(text, text)


def test_lines_of_iree_keep_their_numbers(tools: Tools, tmp_path: Path) -> None:
    for name in ("iree_onnx_dense", "iree_abi_matmul", "iree_onnx_layer_norm"):
        text = recorded(name).read_text()
        lines, plain = text.splitlines(), without_iree(text, Path(name)).splitlines()
        products = [i for i, line in enumerate(lines) if "linalg.generic" in line]
        assert [i for i, line in enumerate(plain) if "linalg.generic" in line] == products
    path = tmp_path / "broken.mlir"
    path.write_text(recorded("iree_onnx_dense").read_text().replace("linalg.matmul", "linalg.no"))
    with pytest.raises(LoweringError, match=f"{path}:9: error"):
        read_payload(path, tools)


def test_several_results_and_plain_tensors_of_iree() -> None:
    text = """module attributes {stream.affinity.default = #hal.device.affinity<@one>} {
  util.global private @one = #hal.device.target<"local", []> : !hal.device
  util.func public @two$async(%arg0: !hal.buffer_view, %arg1: !hal.fence, %arg2: !hal.fence)
      -> (!hal.buffer_view, !hal.buffer_view) attributes {iree.abi.stub} {
    %0 = hal.tensor.import wait(%arg1) => %arg0 "x" : !hal.buffer_view -> tensor<4x2xf32>
    %1 = tensor.empty() : tensor<4xi32>
    %2:2 = hal.tensor.barrier join(%0, %1 : tensor<4x2xf32>, tensor<4xi32>) => %arg2 : !hal.fence
    %3 = hal.tensor.export %2#0 "a" : tensor<4x2xf32> -> !hal.buffer_view
    %4 = hal.tensor.export %2#1 : tensor<4xi32> -> !hal.buffer_view
    util.return %3, %4 : !hal.buffer_view, !hal.buffer_view
  }
  util.func private @same(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    util.return %arg0 : tensor<4xf32>
  }
}
"""
    plain = without_iree(text, Path("two.mlir"))
    assert plain.startswith("module {\n\n")
    assert "@two(%0: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4xi32>)" in plain
    assert "return %0, %1 : tensor<4x2xf32>, tensor<4xi32>" in plain
    assert "func.func private @same(%arg0: tensor<4xf32>) -> (tensor<4xf32>)" in plain
    assert "util." not in plain
    assert plain.count("\n") == text.count("\n")
    with pytest.raises(ScheduleError, match=r"two\.mlir:1: .* without a body"):
        without_iree("util.func private @two(%arg0: tensor<4xf32>)", Path("two.mlir"))
    with pytest.raises(ScheduleError, match=r"two\.mlir:2: .* 'f' returns nothing"):
        without_iree("\nutil.func private @f() {\n}", Path("two.mlir"))


@pytest.mark.parametrize(
    ("operation", "name"),
    [("%1 = stablehlo.add %0, %0 : tensor<4xf32>", "'stablehlo.add' is"),
     ("%1 = torch.constant.none", "'torch.constant.none' is"),
     ("%1 = flow.tensor.clone %0 : tensor<4xf32>", "'flow.tensor.clone' is"),
     ('%1 = "onnx.Relu"(%0) : (tensor<4xf32>) -> tensor<4xf32>', "this operation is")],
)  # fmt: skip
def test_operations_of_other_projects_have_a_remedy(
    operation: str, name: str, tools: Tools, tmp_path: Path
) -> None:
    path = tmp_path / "payload.mlir"
    path.write_text(
        f"func.func @f(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{operation}\n"
        "return %0 : tensor<4xf32>\n}\n"
    )
    with pytest.raises(LoweringError) as caught:
        read_payload(path, tools)
    assert str(caught.value).startswith(f"{path}:2: error: {name} of a dialect that MLIR does not")
    assert "iree-compile --compile-to=input" in str(caught.value)
    assert "\n" not in str(caught.value)
