"""The compiler that builds Nestor's own native programs for this machine.

They are plain C11 and C++17, so LLVM's clang or the system's compiler will do; no development
files of LLVM are needed.
"""

import functools
import shutil
from typing import Final, Literal

from nestor.compiler.toolchain import ToolchainError, discover

Language = Literal["c", "c++"]

_SYSTEM: Final = {"c": ("clang", "gcc", "cc"), "c++": ("clang++", "g++", "c++")}


@functools.cache
def host_compiler(language: Language) -> str:
    """Return the path of a compiler for ``language``: that of the newest LLVM, or the system's.

    :raises ToolchainError: if there is none.
    """
    for toolchain in discover():
        program = toolchain.clang if language == "c" else toolchain.clangxx
        if program.exists():
            return str(program)
    for name in _SYSTEM[language]:
        if found := shutil.which(name):
            return found
    raise ToolchainError(f"There is no {language.upper()} compiler: install clang-22 or g++.")
