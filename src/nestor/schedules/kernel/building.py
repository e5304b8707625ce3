"""Make a shared object of a lowered module."""

from pathlib import Path

from nestor.compiler.process import Limits
from nestor.files import write_atomically
from nestor.schedules.kernel.lowering import Lowered
from nestor.schedules.language.diagnosis import Diagnosis, LoweringError
from nestor.schedules.target import Target
from nestor.schedules.tools import LIMITS, Tools, run_limited
from nestor.temporary import temporary_folder

FLAGS = ("-O3", "-fPIC", "-fno-math-errno", "-ffp-contract=fast", "-Wno-override-module")
"""How clang compiles kernels, besides the words of the target."""


def build_object(
    lowered: Lowered, target: Target, tools: Tools, out: Path, limits: Limits = LIMITS
) -> None:
    """Write the object file of a lowered module, for any target.

    :raises LoweringError: if the module is not in the LLVM dialect, or clang fails.
    """
    with temporary_folder("building") as name:
        source, ir = Path(name) / "lowered.mlir", Path(name) / "kernel.ll"
        write_atomically(source, lowered.text)
        translated = run_limited(
            [tools.mlir_translate, "--mlir-to-llvmir", source, "-o", ir], limits
        )
        if not translated.ok:
            reason = f"the schedule does not end in the LLVM dialect ({translated.reason})"
            raise LoweringError([Diagnosis("error", reason)], translated.ending)
        triple = [f"--target={target.triple}"] if target.triple else []
        compiled = run_limited(
            [tools.clang, *triple, *FLAGS, *target.flags, "-c", ir, "-o", out], limits
        )
        if not compiled.ok:
            reason = f"clang cannot compile the kernel ({compiled.reason})"
            raise LoweringError([Diagnosis("error", reason)], compiled.ending)


def build_library(
    lowered: Lowered, target: Target, tools: Tools, out: Path, limits: Limits = LIMITS
) -> None:
    """Write the shared object of a lowered module, for a target that this machine runs.

    :raises LoweringError: if it cannot be built.
    """
    object_file = out.with_suffix(".o")
    build_object(lowered, target, tools, object_file, limits)
    extra = ["-lm"]
    needed = {"memrefCopy": "-lmlir_c_runner_utils", "omp.parallel": "-lomp"}
    if libraries := [library for sign, library in needed.items() if sign in lowered.text]:
        extra += [f"-L{tools.libraries}", f"-Wl,-rpath,{tools.libraries}", *libraries]
    linked = run_limited([tools.clang, "-shared", object_file, "-o", out, *extra], limits)
    object_file.unlink()
    if not linked.ok:
        reason = f"the kernel cannot be linked ({linked.reason})"
        raise LoweringError([Diagnosis("error", reason)], linked.ending)
