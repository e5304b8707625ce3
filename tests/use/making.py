"""A small project, and how the tests build it by ``nestor make``."""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

OZ: Final = "-Oz -ffunction-sections -fdata-sections"
MAIN: Final = """
#include <stdio.h>
int library(int);
static int half(int x) { return printf("%d\\n", x) * 3; }
int main(int c, char **v) { (void)v; puts("hello"); return library(c) + half(c) + half(c + 1); }
"""
LIBRARY: Final = """
#include <stdio.h>
static int step(int x) { for (int i = 0; i < x; i++) printf("%d %d\\n", i * x, i); return x * 5; }
int library(int x) { return step(x) + 1; }
"""
MAKEFILE: Final = """
app: app.o lib.o
\t$(CC) -o $@ $^
%.o: %.c
\t$(CC) $(CFLAGS) -MMD -c $< -o $@
clean:
\trm -f *.o *.d app
"""
AUTOTOOLS: Final = {
    "configure.ac": """
AC_INIT([p], [1])
AM_INIT_AUTOMAKE([foreign])
AM_PROG_AR
LT_INIT
AC_PROG_CC
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
""",
    "Makefile.am": """
lib_LTLIBRARIES = libboth.la
libboth_la_SOURCES = lib.c
bin_PROGRAMS = app
app_SOURCES = app.c
app_LDADD = libboth.la
""",
}
"""Texts by the name of the file."""
BUILD: Final = ("make", f"CFLAGS={OZ}")


def at(level: str) -> list[str]:
    """Return the build at ``level``."""
    return [*BUILD[:-1], f"CFLAGS={OZ.replace('-Oz', level)}"]


def make(
    command: Path,
    words: Sequence[str],
    folder: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run ``nestor make OPTIONS -- WORDS`` in ``folder``."""
    return subprocess.run(
        [str(command), "make", *options, "--", *words],
        cwd=folder,
        env=os.environ | dict(environment or {}),
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",  # make's messages name folders, whatever bytes they have
        check=False,
    )


def digests(folder: Path) -> dict[str, str]:
    """Return what was built: the objects and the program."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "CMakeFiles/3" not in str(path)
        if path.suffix == ".o" or path.name == "app" or path.suffix == ".a"
    }


def times(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_mtime_ns for name in digests(folder)}


def sources(folder: Path) -> Path:
    """Write a project that make builds in place."""
    folder.mkdir()
    (folder / "app.c").write_text(MAIN)
    (folder / "lib.c").write_text(LIBRARY)
    (folder / "Makefile").write_text(MAKEFILE)
    return folder
