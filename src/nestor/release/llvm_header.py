"""A policy as the inlining model of an LLVM that is built from source, without TensorFlow.

LLVM 19 to 22 take a model as a header and an object beside it (``LLVM_OVERRIDE_MODEL_HEADER_…`` in
llvm/cmake/modules/TensorFlowCompile.cmake) and link TensorFlow's runtime. Here everything is in the
header: the object is empty, and so is the runtime. Later releases also take a class with a map of
its inputs (llvm/Analysis/EmitCModelRunner.h).
"""

from pathlib import Path
from typing import Final

from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.release.cpp import evaluation
from nestor.release.in_tree import DECISION, InTreePolicy, ReleaseError
from nestor.temporary import temporary_folder

CLASS: Final = "InlinerSizeModel"
"""The name of the class and the header that LLVM expects."""

EMITC_CLASS: Final = "InlinerSizeModelEmitC"

_TOP: Final = """\
// {name}: written by 'nestor release --as llvm-header' from the policy
// {digest} (SHA-256).
#ifndef NESTOR_{guard}_H
#define NESTOR_{guard}_H

#include <cmath>
#include <cstdint>
{includes}
"""

_RELEASE: Final = """\
namespace llvm {{
namespace nestor_inliner_size_model {{

{evaluation}
}} // namespace nestor_inliner_size_model

/// The model as llvm::ReleaseModeModelRunner asks it.
class {cls} final {{
public:
  int LookupArgIndex(const std::string &Name) {{
    static constexpr const char *Names[] = {{
        {names}}};
    for (int I = 0; I < {count}; ++I)
      if (Name == Names[I])
        return I;
    return -1;
  }}
  int LookupResultIndex(const std::string &Name) {{
    return Name == "fetch_{decision}" ? 0 : -1;
  }}
  void *arg_data(int Index) {{ return &Inputs[Index]; }}
  void *result_data(int) {{ return &Result; }}
  void Run() {{ Result = logit() > 0; }}

  /// Above 0: inline.
  double logit() const {{
    double X[{count}];
    for (unsigned I = 0; I < {count}; ++I)
      X[I] = double(Inputs[I]);
    return nestor_inliner_size_model::logit(X);
  }}

private:
  int64_t Inputs[{count}] = {{}};
  int64_t Result = 0;
}};
}} // namespace llvm

#endif
"""

_EMITC: Final = """\
namespace nestor_inliner_size_model_emitc {{

{evaluation}
}} // namespace nestor_inliner_size_model_emitc

/// The model as llvm::EmitCModelRunner asks it.
class {cls} {{
public:
  int64_t Inputs[{count}] = {{}};
  const std::map<std::string, char *> reflectionMap = {{
      {entries}}};

  /// Above 0: inline.
  double logit() const {{
    double X[{count}];
    for (unsigned I = 0; I < {count}; ++I)
      X[I] = double(Inputs[I]);
    return nestor_inliner_size_model_emitc::logit(X);
  }}
  int64_t operator()() {{ return logit() > 0; }}
}};

#endif
"""

_CACHE: Final = """\
# cmake -C <this file> -S llvm-project/llvm -B build: an LLVM (19 to 22) that holds the policy
# {name}. It is used with -mllvm -enable-ml-inliner=release.
set(LLVM_OVERRIDE_MODEL_HEADER_INLINERSIZEMODEL "${{CMAKE_CURRENT_LIST_DIR}}/{cls}.h"
    CACHE FILEPATH "The model")
set(LLVM_OVERRIDE_MODEL_OBJECT_INLINERSIZEMODEL "${{CMAKE_CURRENT_LIST_DIR}}/{cls}.o"
    CACHE FILEPATH "An empty object: the model is in the header")
set(LLVM_INLINER_MODEL_PATH "none" CACHE STRING "There is no SavedModel")
set(LLVM_RAEVICT_MODEL_PATH "none" CACHE STRING "No model for evictions")
set(TENSORFLOW_AOT_PATH "${{CMAKE_CURRENT_LIST_DIR}}/runtime" CACHE PATH "An empty runtime")
"""

_RUNTIME: Final = """\
# The model calls nothing of TensorFlow's runtime, which LLVM links under this name.
cmake_minimum_required(VERSION 3.20)
project(tf_xla_runtime LANGUAGES CXX)
add_library(tf_xla_runtime STATIC Empty.cpp)
"""


def header(policy: InTreePolicy, name: str, digest: str) -> str:
    """Return the header with the class that LLVM 19 to 22 compile into their inline advisor.

    :param name: the policy's name, for the comment; with ``digest``, that of its file.
    """
    names = ",\n        ".join(f'"feed_{feature}"' for feature in policy.features)
    return _top(name, digest, CLASS, ("string",)) + _RELEASE.format(
        evaluation=evaluation(policy),
        cls=CLASS,
        names=names,
        count=len(policy.features),
        decision=DECISION,
    )


def emitc_header(policy: InTreePolicy, name: str, digest: str) -> str:
    """Return the header with the class that ``EmitCModelRunner`` of later LLVMs takes."""
    entries = ",\n      ".join(
        f'{{"{feature}", reinterpret_cast<char *>(&Inputs[{index}])}}'
        for index, feature in enumerate(policy.features)
    )
    return _top(name, digest, EMITC_CLASS, ("map", "string")) + _EMITC.format(
        evaluation=evaluation(policy),
        cls=EMITC_CLASS,
        entries=entries,
        count=len(policy.features),
    )


def files(
    policy: InTreePolicy, name: str, digest: str, toolchain: Toolchain
) -> dict[str, bytes | str]:
    """Return what a build of LLVM needs: path within the output folder → content.

    :param toolchain: makes the empty object, for the machine that it compiles for.
    :raises ReleaseError: if the object cannot be compiled.
    """
    return {
        f"{CLASS}.h": header(policy, name, digest),
        f"{EMITC_CLASS}.h": emitc_header(policy, name, digest),
        f"{CLASS}.o": _empty_object(toolchain),
        "llvm.cmake": _CACHE.format(name=_in_comment(name), cls=CLASS),
        "runtime/xla_aot_runtime_src/CMakeLists.txt": _RUNTIME,
        "runtime/xla_aot_runtime_src/Empty.cpp": "// The runtime that the model does not need.\n",
    }


def _top(name: str, digest: str, guard: str, includes: tuple[str, ...]) -> str:
    return _TOP.format(
        name=_in_comment(name),
        digest=digest,
        guard=guard.upper(),
        includes="\n".join(f"#include <{include}>" for include in includes),
    )


def _in_comment(name: str) -> str:
    """Return a name that ends no comment, whatever a file is called."""
    return name.encode("ascii", "replace").decode().replace("\n", " ").replace("\\", "/")


def _empty_object(toolchain: Toolchain) -> bytes:
    with temporary_folder("object") as folder:
        source, result = Path(folder) / "empty.c", Path(folder) / "empty.o"
        source.write_text("")
        done = run_tool([str(toolchain.clang), "-c", str(source), "-o", str(result)])
        if done.returncode != 0:
            raise ReleaseError(
                f"{toolchain.clang} cannot compile an empty file: {done.stderr.strip()[:200]}"
            )
        return result.read_bytes()
