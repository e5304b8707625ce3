"""The option by which a command line asks for LTO. Imported by compiler wrappers: keep it quick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def kind_of_lto(words: Iterable[str]) -> str:
    """Return the kind of LTO for which the last word about it asks, nothing if for none.

    ``auto`` and ``jobserver``, which clang takes from makefiles for gcc, mean full LTO there.
    """
    kind = ""
    for word in words:
        if word.startswith("-flto="):
            kind = word.removeprefix("-flto=")
        elif word == "-flto":
            kind = "full"
        elif word == "-fno-lto":
            kind = ""
    return "full" if kind in ("auto", "jobserver") else kind
