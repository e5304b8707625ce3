"""The folder that ``nestor make`` keeps beside a build.

==============  ===================================================================================
``summary.txt`` the summary of the program, once there is one
``left.txt``    overrides: the modules that a first build did not compile again, if there are any
``lifted.txt``  is there while modules of a former ``left.txt`` are compiled under the policy
``bin/``        the compilers of the build: shell scripts that add the options. In the cache, if
                the path of this folder is one that makefiles and ``PATH`` cannot name
``compiles/``   a record of each compile since ``nestor make`` last looked (``records.py``)
``objects/``    the last record of each object of the build
``logs/``       decisions and bitcode of a first build, until its objects are under the summary
``unfinished``  is there while objects are a first build's that should be under the summary
==============  ===================================================================================

Imports next to nothing: compiles wait for this module.
"""

from __future__ import annotations

import os

from nestor.compiler.cache import cache_place
from nestor.corpus.lto_option import kind_of_lto, spelled_out
from nestor.corpus.no_object import NO_OBJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMPILER_VARIABLES = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "OBJCPLUS_INCLUDE_PATH",
    "SOURCE_DATE_EPOCH", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS", "CLANG_CONFIG_PATH",
    "CLANG_NO_DEFAULT_CONFIG",
)  # fmt: skip
"""The environment variables that change what clang compiles. A record has those that are set."""
VARIABLE = "NESTOR_PROGRAM"
"""The environment variable that names the folder for ``nestor clang``."""
LEFT_MODULES = "left.txt"
HEADER = "nestor-compile 1"
END = "end"
FIRST, POLICY = "first", "policy"
"""How an object was compiled: in a first build, which logs its decisions and knows no summary, or
by the policy with the summary if there is one."""
LINKED = "linked"
"""No object, but a program or a library that one command compiled and linked."""
BY_LTO = "lto"
"""An object for LTO, which is stock's, or a program that LTO linked as stock does."""
UNDER_POLICY_BY_LTO = "lto-policy"
"""A program that LTO linked under the policies for it."""

_NO_OBJECT = frozenset(NO_OBJECT)


def compiler_names(release: int) -> tuple[str, ...]:
    """Return the names under which builds find the compilers of a release of LLVM on ``PATH``."""
    return ("clang", "clang++", f"clang-{release}", f"clang++-{release}")


def compilers_folder(folder: str) -> str:
    """Return the folder of the compilers for ``folder``, that of ``nestor make``.

    Makefiles name them without quotes, and ``PATH`` ends a name at a colon.
    """
    if is_plain(folder):
        return f"{folder}/bin"
    import hashlib  # here, since it takes long, and folders with blanks are rare

    return f"{cache_place()}/compilers/{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}"


def is_plain(path: str) -> bool:
    """Tell whether ``path`` means itself to shells, makefiles and ``PATH``, without quotes."""
    return all(character.isalnum() or character in "/._-+@=," for character in path)


def hide_compilers() -> None:
    """Take ``bin/`` off ``PATH``, if this is a command in a build of ``nestor make``.

    The scripts there answer as clang does, and a search for LLVM would take them for one.
    """
    folder, path = os.environ.get(VARIABLE), os.environ.get("PATH")
    if folder and path:
        own = compilers_folder(folder)
        os.environ["PATH"] = os.pathsep.join(p for p in path.split(os.pathsep) if p != own)


def makes_object(words: Sequence[str]) -> bool:
    """Tell whether a compiler with the arguments ``words`` makes an object file, without LTO."""
    words = spelled_out(words)
    return "-c" in words and not kind_of_lto(words) and _NO_OBJECT.isdisjoint(words)


def with_summary(own: list[str], rest: Sequence[str]) -> list[str]:
    """Return the words of ``nestor clang`` with what ``NESTOR_PROGRAM`` holds, if it is there.

    That is the summary, and the overrides of the modules that a first build has left as they were.

    :param own: the words before ``--``.
    :param rest: the compiler's arguments.
    """
    folder = os.environ.get(VARIABLE)
    if not folder or "--summary" in own or not makes_object(rest):
        return own
    summary = os.path.abspath(f"{folder}/summary.txt")  # noqa: PTH100  pathlib is slow to import
    if not os.path.isfile(summary):  # noqa: PTH113
        return own
    left = os.path.abspath(f"{folder}/{LEFT_MODULES}")  # noqa: PTH100
    are_left = os.path.isfile(left) and "--overrides" not in own  # noqa: PTH113
    return [*own, "--summary", summary, *(["--overrides", left] if are_left else [])]


def record(compiler: str, rest: Sequence[str]) -> None:
    """Leave the record of a compile in ``NESTOR_PROGRAM``; without the variable do nothing.

    A folder that cannot be written is no reason for a compile to fail.
    """
    folder = os.environ.get(VARIABLE)
    if not folder or not makes_object(rest):
        return
    variables = [f"{name}={os.environ[name]}" for name in COMPILER_VARIABLES if name in os.environ]
    fields = [HEADER, POLICY, present_folder(), "", *variables, compiler, *rest, END]
    try:
        os.makedirs(f"{folder}/compiles", exist_ok=True)  # noqa: PTH103
        path = f"{folder}/compiles/{os.getpid()}-{os.urandom(4).hex()}"
        with open(path, "xb") as file:  # noqa: PTH123
            file.write(b"".join(os.fsencode(field) + b"\0" for field in fields))
    except OSError:
        return


def present_folder() -> str:
    """Return the present folder by the name that clang gives it: a shell's, or the real one."""
    name = os.environ.get("PWD", "")
    is_it = os.path.isabs(name) and os.path.isdir(name) and os.path.samefile(name, ".")  # noqa: PTH117, PTH112, PTH121
    return name if is_it else os.getcwd()  # noqa: PTH109
