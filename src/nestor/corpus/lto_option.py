"""The option by which a command line asks for LTO. Imported by compiler wrappers: keep it quick."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER_LINKER = "other linker"


def kind_of_link(words: Sequence[str]) -> str:
    """Return :func:`kind_of_lto`, or :data:`OTHER_LINKER` where that is to be done by one.

    Policies decide inside lld alone.
    """
    words = spelled_out(words)
    kind = kind_of_lto(words)
    linkers = [word for word in words if word.startswith("-fuse-ld=")]
    return OTHER_LINKER if kind and linkers and "lld" not in linkers[-1] else kind


def kind_of_lto(words: Sequence[str]) -> str:
    """Return the kind of LTO for which the last word about it asks, nothing if for none.

    ``auto`` and ``jobserver``, which clang takes from makefiles for gcc, mean full LTO there.
    """
    kind = ""
    for word in spelled_out(words):
        if word.startswith("-flto="):
            kind = word.removeprefix("-flto=")
        elif word == "-flto":
            kind = "full"
        elif word == "-fno-lto":
            kind = ""
    return "full" if kind in ("auto", "jobserver") else kind


def spelled_out(words: Sequence[str]) -> Sequence[str]:
    """Return ``words`` with those of response files in their places."""
    if not any(word.startswith("@") for word in words):
        return words
    from nestor.corpus.capture.response_files import expanded  # here, since it takes long

    return expanded(words)
