"""Where the command ``nestor`` begins.

``nestor clang`` starts once per source file of a build, so a compiler that is remembered is
started before anything else is imported.
"""

from __future__ import annotations

import sys

from nestor.cli.make.place import hide_compilers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_QUIET = ("--quiet", "-q")


def entry() -> None:
    """Run the command line and exit (the console script)."""
    words = without_quiet(sys.argv[1:])
    hide_compilers()
    if words and words[0] in ("clang", "clang++", "flags"):
        from nestor.cli.use import quick

        status = quick.run(words[0], words[1:])
        if status is not None:
            sys.exit(status)
    from nestor.cli import main

    main.entry()


def without_quiet(words: Sequence[str]) -> list[str]:
    """Take ``--quiet`` off the front of a command line, or from among the options of a build's."""
    if words and words[0] in _QUIET:
        return list(words[1:])
    if words and words[0] in ("clang", "clang++", "flags", "make"):
        end = words.index("--") if "--" in words else len(words)
        return [*(word for word in words[:end] if word not in _QUIET), *words[end:]]
    return list(words)
