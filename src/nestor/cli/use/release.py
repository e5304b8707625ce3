"""``nestor release``: a policy in a form that another build takes."""

import shlex
from dataclasses import dataclass, field
from typing import Annotated

import tyro
from rich.markup import escape

from nestor.api.releases import release_policy
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.remarks import remark
from nestor.release.forms import Form, Released, ReleaseSettings


@dataclass(frozen=True)
class Release:
    """Write a policy in a form that needs neither Nestor nor a cache where it is used.

    plugin: one shared object for this LLVM that carries the policies and decides without an option,
    configuration files for clang, a CMake package, and a Debian package. OUT is a prefix with
    lib/nestor and lib/cmake. Its bytes are the same wherever it is built.

    llvm-header: the model in C++ for an LLVM 19 to 22 that is built from source: cmake -C
    OUT/llvm.cmake, then -mllvm -enable-ml-inliner=release. OUT/InlinerSizeModelEmitC.h is the class
    for LLVM's EmitC runner.

    mlir: the model in the dialects func and arith, for LLVM_MLGO_MODELS=NAME,FILE,inliner.

    tflite: the folder of a model for LLVM's development mode, without TensorFlow.

    The last three are models of LLVM itself: they take one policy about inlining-size that reads
    LLVM's own features only and whose answers are decisions. TFLite has no trees.

    Examples:
        nestor release shipped --as plugin --out small
        nestor release shipped shipped-eviction --as plugin --out small --name lean --version 1.2
        nestor release mlgo2020 --as llvm-header --out model
        nestor release runs/bc/policy.safetensors --as mlir --out model
        nestor release mlgo2020 --as tflite --out model --json
    """

    policies: tyro.conf.Positional[tuple[str, ...]]
    """Policy files or built-ins: one, or for a plugin one for each problem."""
    form: Annotated[Form, tyro.conf.arg(name="as")]
    """What is written."""
    out: OutputFolder
    """The folder for it."""
    settings: tyro.conf.OmitArgPrefixes[ReleaseSettings] = field(default_factory=ReleaseSettings)
    """What a plugin and its packages are called."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Write the files and say how they are used."""
        if self.form != "plugin":
            refuse_idle(self.settings, f"with --as {self.form}")
        with progress() as report:
            released = release_policy(
                self.policies,
                self.form,
                self.out,
                settings=self.settings,
                llvm=self.llvm,
                progress=report,
            )
        if self.json:
            print_json(_as_json(released))
        else:
            self._show(released)
        return 0

    def _show(self, released: Released) -> None:
        for path in released.files:
            stdout.print(escape(str(path)), soft_wrap=True)
        stdout.print(f"use it:  {escape(self._use(released))}", soft_wrap=True)
        if released.remark:
            remark(f"remark: {released.remark}.")

    def _use(self, released: Released) -> str:
        out = shlex.quote(str(self.out))
        if released.form == "plugin":
            return f"clang {shlex.join(released.compile_flags)} {released.level} -c file.c"
        if released.form == "llvm-header":
            return f"cmake -C {out}/llvm.cmake -S llvm-project/llvm -B build"
        if released.form == "mlir":
            return f"cmake -DLLVM_MLGO_MODELS=nestor,{released.files[0].absolute()},inliner …"
        return (
            "clang -mllvm -enable-ml-inliner=development -mllvm"
            f" -ml-inliner-model-under-training={out} …"
        )


def _as_json(released: Released) -> dict[str, object]:
    return {
        "form": released.form,
        "files": [str(path) for path in released.files],
        "compile_flags": list(released.compile_flags),
        "link_flags": list(released.link_flags),
        "remark": released.remark,
    }
