"""MLIR decides as the policy does, lowered by mlir-opt and compiled, and in LLVM's own pipeline."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.release.in_tree import InTreePolicy
from nestor.release.mlir import module
from tests.release.policies import POLICIES, rows

# The steps of LLVM_MLGO_MODELS that LLVM 22 has.
LOWERING = (
    "symbol-privatize,canonicalize,convert-to-emitc,wrap-emitc-func-in-class,"
    "arith-expand,convert-math-to-emitc,convert-arith-to-emitc"
)


def tool(toolchain: Toolchain, name: str) -> str:
    path = toolchain.prefix / "bin" / name
    if not path.exists():
        pytest.skip(f"{name} is not installed (Debian: mlir-{toolchain.major}-tools)")
    return str(path)


def policy_named(name: str) -> InTreePolicy:
    policy = POLICIES[name]
    assert isinstance(policy, InTreePolicy)
    return policy


@pytest.mark.parametrize("name", POLICIES)
def test_compiled_decisions(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    policy = policy_named(name)
    text, lowered, ir, library = (tmp_path / f"m.{s}" for s in ("mlir", "llvm.mlir", "ll", "so"))
    text.write_text(module(policy))
    passes = ["--convert-arith-to-llvm", "--convert-func-to-llvm", "--reconcile-unrealized-casts"]
    subprocess.run([tool(toolchain, "mlir-opt"), *passes, text, "-o", lowered], check=True)
    translate = [tool(toolchain, "mlir-translate"), "--mlir-to-llvmir"]
    subprocess.run([*translate, lowered, "-o", ir], check=True)
    words = ["-O1", "-Wno-override-module", "-fPIC", "-shared"]
    subprocess.run([toolchain.clang, *words, ir, "-o", library], check=True)
    ask = ctypes.CDLL(str(library)).Model
    ask.argtypes, ask.restype = [ctypes.c_int64] * len(policy.features), ctypes.c_int64
    x = rows(len(policy.features))
    decisions = np.array([ask(*map(int, row)) for row in x])
    assert (decisions == (policy.logits(x) > 0)).all()
    assert 0.05 < decisions.mean() < 0.95


@pytest.mark.parametrize("name", ["z-score", "trees"])
def test_llvm_makes_a_class_of_it(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    policy = policy_named(name)
    text, lowered, cpp = tmp_path / "m.mlir", tmp_path / "emitc.mlir", tmp_path / "Model.h"
    text.write_text(module(policy))
    pipeline = f"--pass-pipeline=builtin.module({LOWERING})"
    subprocess.run([tool(toolchain, "mlir-opt"), pipeline, text, "-o", lowered], check=True)
    translate = [tool(toolchain, "mlir-translate"), "-mlir-to-cpp"]
    subprocess.run([*translate, lowered, "-o", cpp], check=True)
    # A later LLVM calls the method operator() and adds a map from features to these fields.
    fields = " ".join(f"M.fieldName{i} = x[{i}];" for i in range(len(policy.features)))
    source = tmp_path / "ask.cpp"
    source.write_text(
        '#include <cstdint>\n#include <cstddef>\n#include "Model.h"\n'
        'extern "C" int64_t ask(const int64_t *x) {\n'
        f"  ModelClass M;\n  {fields}\n  return M.execute();\n}}\n"
    )
    library = tmp_path / "m.so"
    words = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run([toolchain.clangxx, *words, source, "-o", library], check=True)
    ask = ctypes.CDLL(str(library)).ask
    ask.restype = ctypes.c_int64
    x = rows(len(policy.features))
    decisions = np.array([ask(row.ctypes.data_as(ctypes.c_void_p)) for row in x])
    assert (decisions == (policy.logits(x) > 0)).all()
