"""Options by which clang makes no object. Imported by compiler wrappers: keep it quick."""

from __future__ import annotations

NO_CODE = (
    "-E", "-S", "-M", "-MM", "-fsyntax-only", "--analyze", "--version", "--help", "-dumpversion",
    "-dumpmachine", "-###", "-cc1", "-cc1as",
)  # fmt: skip
"""By which it makes nothing that could be linked: text, or no output at all."""
NO_OBJECT = (
    *NO_CODE, "-emit-llvm", "-emit-ast", "-emit-pch", "c-header", "c++-header", "-xc-header",
    "-xc++-header",
)  # fmt: skip
"""By which it makes no object: nothing, or something else in an object's place."""
