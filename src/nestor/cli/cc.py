"""``nestor cc`` and ``nestor c++``: the compiler, unchanged, that remembers what it compiled.

Imported once per source file of a build, so nothing heavy may be imported here.
"""

import os
import sys

from nestor.compiler import driver
from nestor.corpus import capture


def run(language: str, argv: list[str]) -> int:
    """Run clang (``language`` ``"c"``) or clang++ (``"c++"``) and return its exit status.

    With ``NESTOR_CORPUS=DIR`` in the environment a command that succeeds is captured as well.
    A capture that fails never changes the exit status.
    """
    clang = _clang(language)
    status = driver.run(clang, argv)
    if status != 0:
        return status
    try:
        where = capture.site(os.environ)
        if where is not None and capture.is_worth(argv):
            capture.capture(clang, language, argv, where)
    except Exception as error:  # The user's build comes first, whatever happens.
        sys.stderr.write(f"nestor: the command ran but was not captured: {error}\n")
    return status


def _clang(language: str) -> str:
    """Return the real compiler: ``NESTOR_CLANG`` (set by our own builds) or the toolchain's."""
    name = "NESTOR_CLANGXX" if language == "c++" else "NESTOR_CLANG"
    if name in os.environ:
        return os.environ[name]
    from nestor.compiler import toolchain  # Looks at the machine, which takes time.

    found = toolchain.find()
    return driver.absolute(found.clangxx if language == "c++" else found.clang)
