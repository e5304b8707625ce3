"""The problem in a user's build: see :mod:`nestor.regalloc.in_builds`."""

from typing import Final

from nestor.regalloc.in_builds import in_builds

IN_BUILDS: Final = in_builds("regalloc-priority", "priority")
