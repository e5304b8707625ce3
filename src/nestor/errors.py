"""The one kind of error that a user is meant to read, and what its sentences share.

Imports next to nothing, since compiles wait.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class NestorError(Exception):
    """A problem that the user can mend: its text is one sentence with the remedy.

    The command line prints the text without a traceback and exits with 1. Anything else that
    is raised is a bug in Nestor and keeps its traceback.
    """


def meant(name: str, names: Iterable[str]) -> str:
    """Return " (is 'x' meant?)" for the one of some names that is most like ``name``, if any is."""
    import difflib  # Not needed unless something is wrong.

    near = difflib.get_close_matches(name, list(names), n=1)
    return f" (is '{near[0]}' meant?)" if near else ""
