"""Kernels for another processor than this machine's best: AVX2 here, and AArch64 only linked."""

import json
import shutil
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.compiler.process import run
from nestor.schedules.payload import operators as texts
from nestor.schedules.target import host
from nestor.schedules.tools import find_tools

PAYLOADS = {
    "matmul_elementwise": texts.matmul_bias_relu(40, 48, 32), "rows": texts.softmax(9, 70),
    "batch_matmul": texts.batch_matmul(2, 9, 17, 5), "elementwise": texts.chain(3, 50),
    "depthwise_conv_2d": texts.depthwise(9, 1), "conv_2d": texts.convolution(3, 10),
}  # fmt: skip


@pytest.mark.parametrize("schedule", PAYLOADS)
def test_every_pipeline_lowers_and_links_for_aarch64(
    schedule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    linker = shutil.which("ld.lld-22") or shutil.which("ld.lld")
    if linker is None:
        pytest.skip("no lld on this machine")
    payload, made, linked = tmp_path / "p.mlir", tmp_path / "kernel.o", tmp_path / "kernel.so"
    payload.write_text(PAYLOADS[schedule])
    words = ["schedule", "apply", str(payload), "--target", "neon", "--object", str(made)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schedule"] == schedule
    # Nothing but the mathematical library of the other machine may be missing.
    assert run([linker, "-shared", made, "-o", linked]).ok
    assert linked.read_bytes()[18] == 183  # EM_AARCH64
    symbols = tmp_path / "symbols"
    tool = find_tools().clang.parent / "llvm-nm"
    assert run([tool, "--dynamic", linked], stdout=symbols).ok
    lines = symbols.read_text().splitlines()
    assert any(" T _mlir_ciface_" in line for line in lines)
    missing = {line.split()[-1] for line in lines if " U " in line}
    assert missing <= {"malloc", "free", "memcpy", "memset", "expf", "tanhf", "memrefCopy"}


@pytest.mark.parametrize("schedule", PAYLOADS)
def test_every_pipeline_runs_with_avx2_only(
    schedule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "avx2" not in host().features:
        pytest.skip("this machine has no AVX2")
    payload, made, code = tmp_path / "p.mlir", tmp_path / "kernel.o", tmp_path / "code"
    payload.write_text(PAYLOADS[schedule])
    words = ["schedule", "run", str(payload), "--target", "avx2", "--rounds", "0", "--json"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["schedule"], result["target"]["name"]) == (schedule, "avx2")
    assert result["verdict"]["correct"]
    words = ["schedule", "apply", str(payload), "--target", "avx2", "--object", str(made)]
    assert main(words) == 0
    assert run([find_tools().clang.parent / "llvm-objdump", "-d", made], stdout=code).ok
    assert "zmm" not in code.read_text()
    assert "ymm" in code.read_text()
