"""Where all that can be made again is kept; imports next to nothing, since compiles wait."""

import os

from nestor.errors import NestorError


def cache_place() -> str:
    """Return the folder of plugins, copies and baselines (``NESTOR_CACHE``, or the user's cache).

    The path is absolute: what is kept there is named in the options of builds, which change
    folders. A relative ``XDG_CACHE_HOME`` does not count, as its specification says.

    :raises NestorError: if the user has no home folder either.
    """
    named = os.environ.get("NESTOR_CACHE")
    if named:
        return named if named.startswith("/") else f"{os.getcwd()}/{named}"  # noqa: PTH109
    general = os.environ.get("XDG_CACHE_HOME", "")
    if not general.startswith("/"):
        general = os.path.expanduser("~/.cache")  # noqa: PTH111
    if not general.startswith("/"):
        raise NestorError(
            "You have no home folder for a cache: name a folder in the variable NESTOR_CACHE."
        )
    return f"{general}/nestor"
