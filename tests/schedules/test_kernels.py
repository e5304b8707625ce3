"""Payloads become kernels that compute what numpy computes; what cannot says where and why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.process import Limits
from nestor.errors import NestorError
from nestor.schedules.kernel.building import build_library, build_object
from nestor.schedules.kernel.guess import guess
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.measure import RunError, Settings, measure
from nestor.schedules.kernel.verify import fresh_inputs, verify
from nestor.schedules.language.diagnosis import LoweringError
from nestor.schedules.language.library import PACKAGED, load, packaged
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.language.text import Place, ScheduleError
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.loops import loops_of, suggest
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.payload.reference import Reference, as_generics
from nestor.schedules.target import find_target, host
from nestor.schedules.tools import Tools, find_tools
from tests.schedules.kernels import compile_text

HEAD = "module attributes {transform.with_named_sequence} {\n"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return find_tools()


CASES = {
    "matmul": texts.matmul(70, 90, 50),
    "matmul_elementwise": texts.matmul_bias_relu(33, 65, 47),
    "batch_matmul": texts.batch_matmul(3, 20, 36, 17),
    "rows": texts.softmax(7, 101),
    "elementwise": texts.chain(5, 203),
    "conv_2d": texts.convolution(5, 19),
    "depthwise_conv_2d": texts.depthwise(37, 2),
}


@pytest.mark.parametrize("schedule", CASES)
def test_a_pipeline_computes_what_numpy_computes(
    schedule: str, tools: Tools, tmp_path: Path
) -> None:
    payload = read_payload(CASES[schedule], tools)
    assert suggest(payload) == schedule
    kernel = compile_text(CASES[schedule], tools, tmp_path)
    verdict = verify(kernel, Reference(as_generics(payload, tools), payload.name), seed=3)
    assert verdict.correct, verdict.reason


@pytest.mark.parametrize("text", [texts.layer_norm(6, 75), texts.row_sums(9, 64)])
def test_normalisation_and_sums_are_rows(text: str, tools: Tools, tmp_path: Path) -> None:
    payload = read_payload(text, tools)
    assert suggest(payload) == "rows"
    verdict = verify(
        compile_text(text, tools, tmp_path),
        Reference(as_generics(payload, tools), payload.name),
        3,
    )
    assert verdict.correct, verdict.reason


def test_elementwise_operations_with_broadcasts_and_several_results(
    tools: Tools, tmp_path: Path
) -> None:
    text = """#whole = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @gelu(%x: tensor<7x37xf32>, %bias: tensor<37xf32>)
    -> (tensor<7x37xf32>, tensor<7x37xf32>) {
  %empty = tensor.empty() : tensor<7x37xf32>
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678 : f32
  %sum = linalg.generic {indexing_maps = [#whole, #columns, #whole],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<7x37xf32>, tensor<37xf32>) outs(%empty : tensor<7x37xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<7x37xf32>
  %result = linalg.generic {indexing_maps = [#whole, #whole],
      iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<7x37xf32>) outs(%empty : tensor<7x37xf32>) {
  ^bb0(%a: f32, %out: f32):
    %scaled = arith.mulf %a, %root : f32
    %erf = math.erf %scaled : f32
    %plus = arith.addf %erf, %one : f32
    %part = arith.mulf %a, %plus : f32
    %y = arith.mulf %part, %half : f32
    linalg.yield %y : f32
  } -> tensor<7x37xf32>
  return %sum, %result : tensor<7x37xf32>, tensor<7x37xf32>
}
"""
    payload = read_payload(text, tools)
    assert suggest(payload) == "elementwise"
    kernel = compile_text(text, tools, tmp_path)
    verdict = verify(kernel, Reference(as_generics(payload, tools), "gelu"), seed=2)
    assert verdict.correct, verdict.reason


def test_a_payload_as_torch_mlir_exports_it(tools: Tools, tmp_path: Path) -> None:
    text = """#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module attributes {torch.debug_module_name = "Scaled"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<10x24xf32>, %arg1: tensor<24x33xf32>) -> tensor<10x33xf32> {
    %cst = arith.constant dense<2.500000e-01> : tensor<f64>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<10x33xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<10x33xf32>) -> tensor<10x33xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<10x24xf32>, tensor<24x33xf32>)
      outs(%1 : tensor<10x33xf32>) -> tensor<10x33xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map],
      iterator_types = ["parallel", "parallel"]}
      ins(%2, %cst : tensor<10x33xf32>, tensor<f64>) outs(%0 : tensor<10x33xf32>) {
    ^bb0(%in: f32, %in_1: f64, %out: f32):
      %4 = arith.truncf %in_1 : f64 to f32
      %5 = arith.mulf %in, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<10x33xf32>
    return %3 : tensor<10x33xf32>
  }
}
"""
    payload = read_payload(text, tools)
    assert suggest(payload) == "matmul_elementwise"
    a, b = fresh_inputs(payload.arguments, 5)
    kernel = compile_text(text, tools, tmp_path)
    np.testing.assert_allclose(kernel(a, b), 0.25 * (a @ b), rtol=1e-4, atol=1e-5)
    assert verify(kernel, Reference(as_generics(payload, tools), "forward"), seed=6).correct


@pytest.mark.parametrize(("element", "total"), [("bf16", "f32"), ("i8", "i32")])
def test_narrow_elements_are_summed_up_in_wide_ones(
    element: str, total: str, tools: Tools, tmp_path: Path
) -> None:
    payload = read_payload(texts.mixed_matmul(element, total), tools)
    kernel = compile_text(payload.text, tools, tmp_path)
    verdict = verify(kernel, Reference(as_generics(payload, tools), payload.name), seed=4)
    assert verdict.correct, verdict.reason
    assert verdict.worst <= verdict.allowed < 1e-4


def test_the_second_operand_of_attention_may_be_transposed(tools: Tools, tmp_path: Path) -> None:
    payload = read_payload(texts.attention_scores(2, 17, 33, 8), tools)
    assert suggest(payload) == "batch_matmul"
    assert loops_of(payload).n == 33
    kernel = compile_text(payload.text, tools, tmp_path)
    q, k = fresh_inputs(kernel.arguments, 2)
    np.testing.assert_allclose(kernel(q, k), q @ k.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)


def test_double_precision_is_exact_to_its_own_rounding(tools: Tools, tmp_path: Path) -> None:
    text = texts.matmul(31, 29, 37, "f64")
    kernel = compile_text(text, tools, tmp_path, "avx2")
    a, b = fresh_inputs(kernel.arguments, 1)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-12, atol=1e-13)


def test_the_reference_is_numpy(tools: Tools) -> None:
    payload = read_payload(texts.softmax(4, 9), tools)
    (x,) = fresh_inputs(payload.arguments, 0)
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(
        Reference(as_generics(payload, tools), payload.name)(x)[0],
        powers / powers.sum(1, keepdims=True),
    )


def test_a_wrong_kernel_is_found_and_not_timed(tools: Tools, tmp_path: Path) -> None:
    right = read_payload(texts.matmul(8, 8, 8), tools)
    wrong = read_payload(texts.matmul(8, 8, 8).replace("%product :", "%start :"), tools)
    out = tmp_path / "kernel.so"
    build_library(lower(wrong, link(packaged(), "plain", {}), tools), host(), tools, out)
    measured = measure({"kernel": out}, right, tools, Settings(rounds=2, numpy=True))
    assert not measured.verdicts["kernel"]["correct"]
    assert "off by" in measured.verdicts["kernel"]["reason"]
    assert set(measured.timings) == {"numpy"}


def test_a_kernel_that_crashes_is_a_result(tools: Tools, tmp_path: Path) -> None:
    payload = read_payload(texts.matmul(8, 8, 8), tools)
    source, out = tmp_path / "bad.c", tmp_path / "bad.so"
    source.write_text("void _mlir_ciface_matmul(void) { __builtin_trap(); }")
    from nestor.compiler.process import run

    assert run([tools.clang, "-shared", "-fPIC", source, "-o", out]).ok
    with pytest.raises(RunError, match="the kernel crashes"):
        measure({"kernel": out}, payload, tools, Settings(rounds=1))
    source.write_text("void _mlir_ciface_matmul(void) { for (volatile int i = 0;;) i = 1; }")
    assert run([tools.clang, "-shared", "-fPIC", source, "-o", out]).ok
    with pytest.raises(RunError, match="does not end"):
        measure({"kernel": out}, payload, tools, Settings(rounds=1), Limits(seconds=6.0))


def test_the_payload_s_own_errors_have_their_line(tools: Tools, tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text(texts.matmul(8, 8, 8).replace("linalg.matmul", "linalg.no_such"))
    with pytest.raises(LoweringError, match=f"{path}:5: error"):
        read_payload(path, tools)


@pytest.mark.parametrize(
    ("change", "message"),
    [(("tensor<8x8xf32>", "tensor<?x8xf32>"), "size that is not fixed"),
     (("func.func", "func.func private"), "no public function")],
)  # fmt: skip
def test_payloads_that_numpy_cannot_call_are_refused(
    change: tuple[str, str], message: str, tools: Tools
) -> None:
    text = "func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> { return %a : tensor<8x8xf32> }"
    with pytest.raises(ScheduleError, match=message):
        read_payload(text.replace(*change), tools)


def test_a_crash_of_mlir_opt_is_explained_with_its_line(tools: Tools, tmp_path: Path) -> None:
    path = tmp_path / "mine.mlir"
    path.write_text(
        HEAD + "transform.named_sequence @mine(%m: !transform.any_op {transform.consumed}) {\n"
        '%op = transform.structured.match ops{["linalg.matmul"]} in %m'
        " : (!transform.any_op) -> !transform.any_op\n"
        "%size = transform.param.constant 4 : i64 -> !transform.any_param\n"
        "%t, %l = transform.structured.tile_using_for %op tile_sizes [%size]"
        " : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op)\n"
        "transform.yield\n}\n}\n"
    )
    payload = read_payload(texts.matmul(8, 8, 8), tools)
    with pytest.raises(LoweringError) as caught:
        lower(payload, link(load([PACKAGED, path]), "mine", {}), tools)
    assert caught.value.diagnoses[0].place == Place(path, 5)
    assert "mlir-opt crashes" in caught.value.diagnoses[0].reason


def test_a_failing_step_has_its_place_in_the_library(tools: Tools) -> None:
    payload = read_payload(texts.chain(4, 4), tools)
    choice = {d.name: d.options[0] for d in decisions_of(packaged(), "matmul")}
    with pytest.raises(LoweringError) as caught:
        lower(payload, link(packaged(), "matmul", choice), tools, Limits(seconds=20.0))
    place = caught.value.diagnoses[0].place
    assert place is not None
    assert PACKAGED in place.file.parents


def test_a_second_target_gets_an_object_of_its_own(tools: Tools, tmp_path: Path) -> None:
    payload = read_payload(texts.matmul(32, 32, 32), tools)
    neon = find_target("neon")
    choice = guess(decisions_of(packaged(), "matmul"), loops_of(payload), neon)
    lowered = lower(payload, link(packaged(), "matmul", choice), tools)
    out = tmp_path / "kernel.o"
    build_object(lowered, neon, tools, out)
    assert out.read_bytes()[18] == 183  # EM_AARCH64


def test_narrow_vectors_leave_wide_registers_alone(tools: Tools, tmp_path: Path) -> None:
    payload = read_payload(texts.matmul(64, 64, 64), tools)
    for name, wide in (("avx2", False), ("avx512", True)):
        target = find_target(name)
        choice = guess(decisions_of(packaged(), "matmul"), loops_of(payload), target)
        lowered = lower(payload, link(packaged(), "matmul", choice), tools)
        from nestor.compiler.process import run

        source, assembly = tmp_path / "kernel.o", tmp_path / "kernel.s"
        build_object(lowered, target, tools, source)
        objdump = tools.clang.parent / "llvm-objdump"
        assert run([objdump, "-d", source], stdout=assembly).ok
        text = assembly.read_text()
        assert ("zmm" in text) == wide
        assert "vfmadd" in text


def test_arguments_are_checked_and_never_written(tools: Tools, tmp_path: Path) -> None:
    kernel = compile_text(texts.matmul(16, 8, 4), tools, tmp_path)
    a, b = fresh_inputs(kernel.arguments, 0)
    with pytest.raises(NestorError, match=r"argument 2 must be float32\[4, 8\]"):
        kernel(a, b.T)
    with pytest.raises(NestorError, match="takes 2 arrays"):
        kernel(a)
    strided = np.asfortranarray(a)
    np.testing.assert_allclose(kernel(strided, b), a @ b, rtol=1e-5, atol=1e-5)


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tools: Tools) -> None:
    from nestor.compiler.toolchain import ToolchainError, find
    from nestor.schedules import tools as module

    there = replace(find(), prefix=Path("/nonexistent"))
    monkeypatch.setattr(module, "find", lambda _: there)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolchainError, match="apt-get install mlir-22-tools"):
        find_tools()
