"""Where the bitcode and the command line of a compile go: names only, quick to import."""

from typing import Final

BITCODE: Final = "module.bc"
COMMAND: Final = "module.cmd"
"""Names of files in the folder of a compile."""
SECTIONS: Final = {".llvmbc": BITCODE, ".llvmcmd": COMMAND}


def removal(folder: str) -> list[str]:
    """Return the options of llvm-objcopy that move the sections of an object into ``folder``."""
    return [
        option
        for section, name in SECTIONS.items()
        for option in (f"--dump-section={section}={folder}/{name}", f"--remove-section={section}")
    ]
