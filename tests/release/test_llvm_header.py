"""The headers give Python's logits bit for bit, also where products and sums may be fused."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.policy.names import NamedPolicy
from nestor.release.forms import release_in_tree
from tests.release.policies import POLICIES, rows

HERE = Path(__file__).parent
FUSING = ("-O3", "-march=haswell", "-ffp-contract=fast")


def compilers(toolchain: Toolchain) -> dict[str, str]:
    """Return those that build LLVM."""
    return {"g++": "g++", "clang": str(toolchain.clangxx)}


def has_fused_products() -> bool:
    """Tell whether this machine runs what ``-march=haswell`` compiles."""
    return " fma " in Path("/proc/cpuinfo").read_text()


@pytest.fixture(scope="module", params=POLICIES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(kind: str, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a released policy."""
    out = tmp_path_factory.mktemp("model")
    released = release_in_tree(NamedPolicy.of(POLICIES[kind]), "llvm-header", out, toolchain)
    assert all(path.is_file() for path in released.files)
    return out


@pytest.mark.parametrize("compiler", ["g++", "clang"])
@pytest.mark.parametrize("flags", [("-O2",), FUSING], ids=["plain", "fusing"])
def test_logits_are_those_of_python(
    toolchain: Toolchain, kind: str, model: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    if flags == FUSING and not has_fused_products():
        pytest.skip("this machine has no fused multiply-add")
    policy = POLICIES[kind]
    program = model / f"vectors-{compiler}-{len(flags)}"
    words = [compilers(toolchain)[compiler], "-std=c++17", "-Wall", "-Werror", *flags]
    subprocess.run(
        [*words, "-I", str(model), str(HERE / "Vectors.cpp"), "-o", str(program)], check=True
    )
    x = rows(len(policy.features))
    given, found = model / "rows", model / "results"
    given.write_bytes(x.tobytes())
    subprocess.run([str(program), str(given), str(found), *policy.features], check=True)
    answers = np.fromfile(found).reshape(len(x), 4)
    logits = policy.logits(x)
    assert 0.05 < (logits > 0).mean() < 0.95
    for column in (0, 2):
        assert answers[:, column].tobytes() == logits.tobytes()
        assert (answers[:, column + 1] == (logits > 0)).all()


def test_llvm_takes_the_model(model: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    """LLVM's own CMake module, as installed, finds header, object and runtime."""
    module = toolchain.prefix / "lib/cmake/llvm"
    (tmp_path / "CMakeLists.txt").write_text(
        f"""
cmake_minimum_required(VERSION 3.20)
project(analysis LANGUAGES C CXX)
list(APPEND CMAKE_MODULE_PATH "{module}")
include(TensorFlowCompile)
include_directories(${{CMAKE_CURRENT_BINARY_DIR}})
add_subdirectory(${{TENSORFLOW_AOT_PATH}}/xla_aot_runtime_src runtime)
tf_find_and_compile(${{LLVM_INLINER_MODEL_PATH}} url models/inliner-Oz generator.py serve action
                    InlinerSizeModel llvm::InlinerSizeModel)
tf_find_and_compile(${{LLVM_RAEVICT_MODEL_PATH}} url models/regalloc generator.py serve action
                    RegAllocEvictModel llvm::RegAllocEvictModel)
add_library(analysis SHARED Analysis.cpp ${{GeneratedMLSources}})
target_link_libraries(analysis ${{MLLinkDeps}})
"""
    )
    (tmp_path / "Analysis.cpp").write_text(
        """
#ifdef LLVM_HAVE_TF_AOT_REGALLOCEVICTMODEL
#error there is no model for evictions
#endif
#ifdef LLVM_HAVE_TF_AOT_INLINERSIZEMODEL
#include "InlinerSizeModel.h"
extern "C" int64_t ask() { llvm::InlinerSizeModel M; M.Run(); return M.logit() > 0; }
#endif
"""
    )
    build = tmp_path / "build"
    cmake = ["cmake", "-C", str(model / "llvm.cmake"), "-S", str(tmp_path), "-B", str(build)]
    tools = [f"-DCMAKE_C_COMPILER={toolchain.clang}", f"-DCMAKE_CXX_COMPILER={toolchain.clangxx}"]
    subprocess.run([*cmake, *tools], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    symbols = ["nm", "-D", "--defined-only", str(build / "libanalysis.so")]
    assert " ask" in subprocess.run(symbols, check=True, capture_output=True, text=True).stdout
