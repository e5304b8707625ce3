"""``nestor cc`` and ``nestor c++``: the compiler, unchanged, that records what it compiled.

Imported once per source file of a build, so nothing heavy may be imported here.
"""

import os
import sys

from nestor.corpus.capture import driver


def run(language: str, argv: list[str]) -> int:
    """Run clang (``language`` ``"c"`` or ``"cc"``) or clang++ (``"c++"``); return its exit status.

    With ``NESTOR_CORPUS=DIR`` in the environment a command that succeeds is captured as well, at
    the level ``NESTOR_LEVEL`` (-Oz if it is not set). A capture that fails never changes the exit
    status. Without, clang takes the place of this process, so that nothing is returned. With
    ``NESTOR_CAPTURE_ONLY`` the command itself is not run: that is how ``compile_commands.json`` is
    read. ``NESTOR_GCC`` and ``NESTOR_GXX`` name compilers that take over what clang refuses.
    """
    language = "c++" if language == "c++" else "c"  # The command itself is called cc.
    clang = _clang(language)
    if not os.environ.get("NESTOR_CORPUS"):
        os.execv(clang, [clang, *argv])  # noqa: S606  the compiler, as the user asked
    built = "NESTOR_CAPTURE_ONLY" not in os.environ
    other = os.environ.get("NESTOR_GXX" if language == "c++" else "NESTOR_GCC")
    if other:
        from nestor.corpus.capture.any_build import adapted, run_either

        argv = adapted(argv)
        status, argv = run_either(clang, other, argv)
    else:
        status = driver.run(clang, argv) if built else 0
    if status != 0:
        return status
    try:
        from nestor.corpus.capture import compilation  # Not needed by a compilation that fails.

        where = compilation.target(os.environ)
        if where is not None and driver.may_make_code(argv):
            where.journal.note_call()
            compilation.capture(clang, language, argv, where, built=built)
    except Exception as error:  # The user's build comes first, whatever happens.
        sys.stderr.write(f"nestor: the command ran but was not captured: {error}\n")
    return status


def _clang(language: str) -> str:
    """Return the real compiler.

    ``NESTOR_CLANG`` and ``NESTOR_CLANGXX`` (set by our own builds) go first, then the prefix
    ``NESTOR_LLVM``, then clang 22 on the path; only then is the machine searched.
    """
    chosen = os.environ.get("NESTOR_CLANGXX" if language == "c++" else "NESTOR_CLANG")
    if chosen:
        return chosen
    name = "clang++" if language == "c++" else "clang"
    prefix = os.environ.get("NESTOR_LLVM")
    folders = [f"{prefix}/bin"] if prefix else os.get_exec_path()
    for folder in folders:
        candidate = f"{folder}/{name if prefix else f'{name}-22'}"
        if os.access(candidate, os.X_OK):
            return candidate
    from nestor.compiler import toolchain  # Looks at the machine, which takes time.

    found = toolchain.find()
    return str(found.clangxx if language == "c++" else found.clang)
