"""Build our tool for exactly the valgrind of this machine, once, and keep it.

A tool is a program of its own that contains valgrind's core, so it fits one version. It is linked
against what the package ``valgrind`` brings: headers, and static libraries of the core.
"""

import contextlib
import functools
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.built import build_once, digest_of
from nestor.compiler.cache import cache_place
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import ToolchainError
from nestor.cost.native.host_compiler import host_compiler
from nestor.events.errors import EventsError
from nestor.files import sha256_of

NAME: Final = "nestor-events"
"""Of the tool, as valgrind's option ``--tool`` names it."""
_PLATFORM: Final = "amd64-linux"
_LIBRARIES: Final = ("coregrind", "vex", "gcc-sup")
_FLAGS: Final = (
    "-m64", "-std=gnu11", "-O3", "-march=native", "-Wall", "-Wno-pointer-sign",
    "-fno-stack-protector", "-fno-strict-aliasing", "-fno-builtin", "-fomit-frame-pointer",
    "-fno-pie", "-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1",
    "-DVGPV_amd64_linux_vanilla=1",
)  # fmt: skip
_LINK: Final = (
    "-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start",
    "-Wl,-Ttext-segment=0x58000000",  # where valgrind's core expects itself, away from programs
    "-Wl,--build-id=none",
)  # fmt: skip
_INSTALL: Final = "install the package valgrind with its headers, as apt-get install valgrind"


@dataclass(frozen=True)
class Valgrind:
    """The valgrind of this machine."""

    program: Path
    headers: Path
    libraries: Path
    tools: Path
    """The folder of its own tools and of what they load."""


@dataclass(frozen=True)
class Tool:
    """Our tool, built."""

    valgrind: Valgrind
    folder: Path
    """With the tool and links to what valgrind brings; the environment's ``VALGRIND_LIB``."""


def source_folder() -> Path:
    """Return the folder of the tool's C sources."""
    return Path(str(resources.files("nestor"))) / "native" / "events"


@functools.cache
def find_valgrind() -> Valgrind:
    """Return the valgrind on the path, with what a tool is built of.

    :raises EventsError: if it is absent, or came without its headers or libraries.
    """
    found = shutil.which("valgrind")
    if found is None:
        raise EventsError(f"valgrind is not installed; {_INSTALL}.")
    prefix = Path(found).resolve().parent.parent
    name = f"lib{_LIBRARIES[0]}-{_PLATFORM}.a"
    headers = prefix / "include" / "valgrind"
    libraries = _first(
        [prefix / lib / "valgrind" for lib in ("lib/x86_64-linux-gnu", "lib64", "lib")], name
    )
    tools = _first(
        [prefix / lib / "valgrind" for lib in ("libexec", "lib/x86_64-linux-gnu", "lib64", "lib")],
        f"none-{_PLATFORM}",
    )
    if libraries is None or tools is None or not (headers / "pub_tool_tooliface.h").exists():
        raise EventsError(f"{found} has no headers and libraries for x86-64 tools; {_INSTALL}.")
    # Debian's valgrind is a script that adds to the program's environment, and starts this.
    binary = Path(found).with_name("valgrind.bin")
    return Valgrind(binary if binary.exists() else Path(found), headers, libraries, tools)


def _first(folders: list[Path], name: str) -> Path | None:
    return next((folder for folder in folders if (folder / name).exists()), None)


@functools.cache
def ensure_tool() -> Tool:
    """Return the tool, building it if need be (a few CPU-seconds).

    :raises EventsError: if valgrind or a C compiler is absent, or the build fails.
    """
    valgrind = find_valgrind()
    try:
        compiler = host_compiler("c")
    except ToolchainError as error:
        raise EventsError(str(error)) from None
    archives = [valgrind.libraries / f"lib{name}-{_PLATFORM}.a" for name in _LIBRARIES]
    builder = "\0".join([compiler, *_FLAGS, *_LINK, sha256_of(archives[0]), _processor()])
    folder = Path(cache_place()) / "events" / digest_of(source_folder(), builder)
    program = folder / f"{NAME}-{_PLATFORM}"

    def build(scratch: Path) -> Path:
        result = scratch / program.name
        sources = sorted(source_folder().glob("*.c"))
        command: list[str | Path] = [
            compiler,
            *_FLAGS,
            f"-I{valgrind.headers}",
            *_LINK,
            *sources,
            *archives,
            "-lgcc",
        ]
        done = run([*command, "-o", result], Limits(seconds=300))
        if not done.ok:
            raise EventsError(
                f"The tool that counts events could not be built with {compiler} ({done.reason});"
                f" {_INSTALL} and libc6-dev."
            )
        return result

    build_once(program, build)
    _link_the_rest(valgrind.tools, folder)
    return Tool(valgrind, folder)


def _link_the_rest(tools: Path, folder: Path) -> None:
    """Put links to the files that valgrind's core loads beside our tool."""
    for file in tools.iterdir():
        place = folder / file.name
        if place.is_symlink() or not file.is_file():
            continue
        with contextlib.suppress(FileExistsError):  # another process was faster
            place.symlink_to(file)


def _processor() -> str:
    """Return what decides which instructions ``-march=native`` means."""
    from nestor.processor import this_machine

    return this_machine()
