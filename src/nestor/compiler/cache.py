"""Where all that can be made again is kept; imports next to nothing, since compiles wait."""

import os


def cache_place() -> str:
    """Return the folder of plugins, copies and baselines (``NESTOR_CACHE``, or the user's cache).

    The path is absolute: what is kept there is named in the options of builds, which change
    folders. A relative ``XDG_CACHE_HOME`` does not count, as its specification says.
    """
    named = os.environ.get("NESTOR_CACHE")
    if named:
        return named if named.startswith("/") else f"{os.getcwd()}/{named}"  # noqa: PTH109
    general = os.environ.get("XDG_CACHE_HOME", "")
    if not general.startswith("/"):
        general = os.path.expanduser("~/.cache")  # noqa: PTH111
    return f"{general}/nestor"
