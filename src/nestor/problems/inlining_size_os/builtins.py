"""Policies for -Os that need no file: the packaged one and simple rules."""

from pathlib import Path
from typing import Final

from nestor.problems.inlining_size.builtins import InliningBuiltins
from nestor.problems.inlining_size_os.in_builds import NAME

BUILTINS: Final = InliningBuiltins(NAME, Path(__file__).parent / "data", ("shipped-os",))
"""``shipped-os`` is the one to use (docs/problems/inlining-size-os.md)."""
