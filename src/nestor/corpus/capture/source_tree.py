"""Which folder is the source tree of a compile command, when the user has not said so.

All commands of one build must agree on it, whatever folder each of them runs in: it names the
project and its modules. Imported by the compiler wrapper: keep it quick.
"""

import json
from pathlib import Path

_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "configure", "CMakeLists.txt", "meson.build")
_CMAKE_SOURCE = b"\nCMAKE_HOME_DIRECTORY:INTERNAL="


def source_tree(folder: Path) -> Path:
    """Return the source tree of a command that runs in ``folder``.

    That is the checkout around the folder; without one the source folder that CMake or Meson has
    noted in its build folder; else the topmost folder of those above that hold a makefile, one
    after the other (a recursive make runs the compiler in each); else ``folder`` itself.
    """
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return configured_from(folder) or _top_of_makefiles(folder)


def debug_paths(source: Path, folder: Path) -> list[str]:
    """Return the options that make relative paths in line numbers start from the source tree.

    An empty prefix fits every path, so absolute paths are mapped to themselves before: the last
    option that fits is taken.

    :param folder: where the compiler runs.
    """
    if folder == source or not folder.is_relative_to(source):
        return []
    return [f"-fdebug-prefix-map=={folder.relative_to(source)}/", "-fdebug-prefix-map=/=/"]


def configured_from(folder: Path) -> Path | None:
    """Return the source folder of the CMake or Meson build that ``folder`` is part of, if any."""
    for candidate in (folder, *folder.parents):
        try:
            cache = b"\n" + (candidate / "CMakeCache.txt").read_bytes()
            if _CMAKE_SOURCE in cache:
                line = cache.split(_CMAKE_SOURCE, 1)[1].split(b"\n", 1)[0]
                return Path(line.decode(errors="surrogateescape").rstrip("\r"))
        except OSError:
            pass
        try:
            about = json.loads((candidate / "meson-info" / "meson-info.json").read_bytes())
            return Path(about["directories"]["source"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return None


def _top_of_makefiles(folder: Path) -> Path:
    top = folder
    for candidate in folder.parents:
        if candidate == Path.home() or not any((candidate / m).exists() for m in _MAKEFILES):
            break
        top = candidate
    return top
