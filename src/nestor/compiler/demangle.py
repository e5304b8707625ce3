"""C++ names as people write them."""

import subprocess
from collections.abc import Iterable

from nestor.compiler.toolchain import Toolchain


def demangle(toolchain: Toolchain, names: Iterable[str]) -> dict[str, str]:
    """Return the readable form of each name; a name that has none, or no tool, stays as it is."""
    words = [name for name in dict.fromkeys(names) if "\n" not in name]
    tool = toolchain.prefix / "bin" / "llvm-cxxfilt"
    try:
        done = subprocess.run(
            [str(tool)], input="\n".join(words) + "\n", capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.splitlines()
    return dict(zip(words, lines, strict=True)) if len(lines) == len(words) else {}
