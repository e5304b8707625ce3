"""What goes with a released plugin: flags, a CMake package and a Debian package."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.release.in_tree import ReleaseError
from nestor.temporary import temporary_folder

EARLIEST: Final = 315_532_800
"""1 January 1980, the time of the files in a package unless SOURCE_DATE_EPOCH names another."""

_CONFIG: Final = """\
# find_package({package}), then target_link_libraries(app PRIVATE nestor::{name}): the C and C++
# files of app are compiled under {title}. Under full or thin LTO, use nestor::{name}-lto instead,
# which decides in the link. Policies act on code compiled at {levels}.
get_property(_nestor_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
foreach(_nestor_language C CXX)
  if(NOT _nestor_language IN_LIST _nestor_languages)
    continue()
  endif()
  if(NOT CMAKE_${{_nestor_language}}_COMPILER_ID STREQUAL "Clang"
     OR NOT CMAKE_${{_nestor_language}}_COMPILER_VERSION MATCHES "^{major}\\\\.")
    set(${{CMAKE_FIND_PACKAGE_NAME}}_FOUND FALSE)
    set(${{CMAKE_FIND_PACKAGE_NAME}}_NOT_FOUND_MESSAGE
        "the plugin is for Clang {major}: set CMAKE_C_COMPILER and CMAKE_CXX_COMPILER to it")
    return()
  endif()
endforeach()

get_filename_component(_nestor_plugin "${{CMAKE_CURRENT_LIST_DIR}}/../../nestor/{plugin}" ABSOLUTE)
if(NOT TARGET nestor::{name})
  add_library(nestor::{name} INTERFACE IMPORTED)
  set_target_properties(nestor::{name} PROPERTIES INTERFACE_COMPILE_OPTIONS
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fpass-plugin=${{_nestor_plugin}}>")
  add_library(nestor::{name}-lto INTERFACE IMPORTED)
  set_target_properties(nestor::{name}-lto PROPERTIES INTERFACE_LINK_OPTIONS
    "-fuse-ld=lld;LINKER:--load-pass-plugin=${{_nestor_plugin}}")
endif()
"""

_VERSION: Final = """\
set(PACKAGE_VERSION "{version}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""

_CONTROL: Final = """\
Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Depends: libllvm{major}
Section: devel
Priority: optional
Description: learned compiler policy {name} for clang {major}
 A plugin for clang and lld of LLVM {major} that decides by {title}.
 Use it by clang-{major} --config=/usr/lib/nestor/{name}.cfg, or in CMake by
 find_package(nestor-{name}).
"""

_COPYRIGHT: Final = """\
The plugin is part of Nestor, under the Apache License v2.0 with LLVM Exceptions
(https://llvm.org/LICENSE.txt). The policies that it carries say in their own metadata where they
come from: 'nestor policy FILE' shows it.
"""


@dataclass(frozen=True)
class Contents:
    """What a released plugin is called and what it holds."""

    name: str
    """Of the release: words of a-z and 0-9 with hyphens between them."""
    plugin: str
    """The plugin's file name, which changes with its content."""
    title: str
    """The policies in words."""
    levels: str
    """The optimisation levels at which they act, in words."""
    version: str
    """Of the packages: digits with dots between them."""


def side_files(contents: Contents, toolchain: Toolchain) -> dict[str, str]:
    """Return the flags and the CMake package: path below the prefix → text.

    The flags are configuration files of clang, in which ``<CFGDIR>`` is the file's own folder, so
    that the prefix can be moved.
    """
    name, title = contents.name, contents.title
    plugin = f"<CFGDIR>/{contents.plugin}"
    package = f"nestor-{name}"
    config = _CONFIG.format(
        package=package,
        name=name,
        title=title,
        levels=contents.levels,
        plugin=contents.plugin,
        major=toolchain.major,
    )
    cmake = f"lib/cmake/{package}/{package}"
    return {
        f"lib/nestor/{name}.cfg": f"# clang --config=<this file>: compiles under {title}\n"
        f"-fpass-plugin={plugin}\n",
        f"lib/nestor/{name}-lto.cfg": "# clang --config=<this file> in the link, under LTO: there"
        f"\n# {title} decides; nothing is added to the compiles\n"
        f"-fuse-ld=lld\n-Wl,--load-pass-plugin={plugin}\n",
        f"{cmake}-config.cmake": config,
        f"{cmake}-config-version.cmake": _VERSION.format(version=contents.version),
    }


def debian_package(
    files: Mapping[str, bytes | str], contents: Contents, toolchain: Toolchain
) -> tuple[str, bytes] | None:
    """Return a package's file name and its bytes; None where there is no ``dpkg-deb``.

    The bytes depend on the arguments and on SOURCE_DATE_EPOCH alone.

    :param files: path below ``/usr`` → content.
    :param toolchain: that of Debian; the package depends on its library.
    :raises ReleaseError: if ``dpkg-deb`` fails.
    """
    tool = shutil.which("dpkg-deb")
    if tool is None:
        return None
    architecture = run_tool(["dpkg", "--print-architecture"]).stdout.strip()
    package = f"nestor-{contents.name}-llvm{toolchain.major}"
    name = f"{package}_{contents.version}_{architecture}.deb"
    control = _CONTROL.format(
        package=package,
        version=contents.version,
        architecture=architecture,
        maintainer=_maintainer(),
        major=toolchain.major,
        name=contents.name,
        title=contents.title,
    )
    everything: dict[str, bytes | str] = {
        "DEBIAN/control": control,
        f"usr/share/doc/{package}/copyright": _COPYRIGHT,
        **{f"usr/{path}": content for path, content in files.items()},
    }
    with temporary_folder("debian") as scratch:
        root, result = Path(scratch) / "root", Path(scratch) / name
        for place, content in everything.items():
            _write(root / place, content)
        moment = _moment()
        for path in [root, *root.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, (moment, moment))
        # One thread of gzip gives the same bytes on every machine; xz cuts by threads.
        words = ["env", f"SOURCE_DATE_EPOCH={moment}", tool, "--root-owner-group", "-Zgzip"]
        done = run_tool([*words, "--build", str(root), str(result)])
        if done.returncode != 0:
            raise ReleaseError(f"dpkg-deb cannot make {name}: {done.stderr.strip()[:300]}")
        return name, result.read_bytes()


def is_of_debian(toolchain: Toolchain) -> bool:
    """Tell whether a toolchain lies where Debian's packages put it."""
    return toolchain.prefix == Path(f"/usr/lib/llvm-{toolchain.major}")


def title_of(names: Sequence[str]) -> str:
    """Return the policies in words."""
    return f"the polic{'y' if len(names) == 1 else 'ies'} {' and '.join(names)}"


def _write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _maintainer() -> str:
    """Return the maintainer as Debian's tools find out who it is."""
    name = os.environ.get("DEBFULLNAME", "Nestor")
    address = os.environ.get("DEBEMAIL", "nobody@localhost")
    return f"{name} <{address}>".replace("\n", " ")


def _moment() -> int:
    """Return the time of the package's files, in seconds since 1970."""
    named = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(named) if named.isdecimal() else EARLIEST
