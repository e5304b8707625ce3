"""Placeholder of the build protocol (branch build brings it)."""


class Build:
    """How a program is built."""
