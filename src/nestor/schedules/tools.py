"""The tools of MLIR beside a toolchain's clang, and how they are run."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.releases import MAIN_RELEASE
from nestor.compiler.toolchain import Toolchain, ToolchainError, find


@dataclass(frozen=True)
class Tools:
    """mlir-opt, mlir-translate and clang of one LLVM."""

    mlir_opt: Path
    mlir_translate: Path
    clang: Path
    version: str
    """Of LLVM, for example ``22.1.8``."""

    @property
    def libraries(self) -> Path:
        """The folder of MLIR's libraries for run time, and of OpenMP's."""
        return self.clang.parent.parent / "lib"


def find_tools(llvm: str | None = None) -> Tools:
    """Return the tools of the toolchain that Nestor uses.

    :param llvm: a prefix or a clang; None: the LLVM of this machine.
    :raises ToolchainError: if there is no LLVM, or no MLIR beside it.
    """
    toolchain = find(llvm)
    opt, translate = (_tool(toolchain, name) for name in ("mlir-opt", "mlir-translate"))
    return Tools(opt, translate, toolchain.clang, toolchain.version)


def _tool(toolchain: Toolchain, name: str) -> Path:
    """Return a tool beside clang, or the one of the same release on the path."""
    beside = toolchain.prefix / "bin" / name
    if beside.is_file():
        return beside
    found = shutil.which(f"{name}-{toolchain.major}")
    if found is None:
        raise ToolchainError(
            f"There is no {name} beside {toolchain.clang}: install MLIR {MAIN_RELEASE} (Debian:"
            f" apt-get install mlir-{MAIN_RELEASE}-tools libmlir-{MAIN_RELEASE}-dev)."
        )
    return Path(found)


LIMITS = Limits(seconds=60.0, memory_mib=4096)
"""What lowering or compiling one kernel may use unless the caller says otherwise."""


def run_limited(command: list[str | Path], limits: Limits, stdout: Path | None = None) -> Outcome:
    """Run a tool within limits; standard output goes to a file."""
    return run(command, limits, stdout=stdout)
