"""Running a build with the compiler wrappers in front of clang."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import nestor
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError

_WRAPPER = (
    "import sys; sys.path.insert(0, {package!r}); from nestor.cli.cc import run; "
    "sys.exit(run({language!r}, sys.argv[1:]))"
)


class BuildError(NestorError):
    """A build that did not succeed; the text ends with what it last said."""


def write_wrappers(folder: Path) -> tuple[Path, Path]:
    """Write ``cc`` and ``c++`` into ``folder`` and return them.

    They are ``nestor cc`` and ``nestor c++`` for builds that want one word, and start faster:
    of Python's packages only ours is needed.
    """
    package = str(Path(nestor.__file__).parent.parent)
    made = []
    for name, language in (("cc", "c"), ("c++", "c++")):
        code = _WRAPPER.format(package=package, language=language)
        path = folder / name
        path.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS -c {shlex.quote(code)} "$@"\n'
        )
        path.chmod(0o755)
        made.append(path)
    return made[0], made[1]


def environment(
    toolchain: Toolchain,
    wrappers: tuple[Path, Path],
    corpus: Path | None,
    project: str,
    source: Path,
) -> dict[str, str]:
    """Return the environment of a build; with ``corpus`` None nothing is captured."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("NESTOR_")}
    ours = {
        "CC": str(wrappers[0]),
        "CXX": str(wrappers[1]),
        "NESTOR_CLANG": str(toolchain.clang),
        "NESTOR_CLANGXX": str(toolchain.clangxx),
        "SOURCE_DATE_EPOCH": plain.get("SOURCE_DATE_EPOCH", "0"),
    }
    if corpus is not None:
        ours |= {
            "NESTOR_CORPUS": str(corpus),
            "NESTOR_PROJECT": project,
            "NESTOR_SOURCE": str(source),
        }
    return {**plain, **ours}


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run one command of a build in ``folder``; raises :class:`BuildError` if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=3600, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        text = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        errors = [line for line in text if "error" in line.lower()] or text[-1:]
        last = errors[0].strip() if errors else "no message"
        raise BuildError(f"{Path(command[0]).name} failed ({done.returncode}): {last:.300}")
