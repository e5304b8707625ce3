"""What a machine may lack, looked at without the code under test."""

import platform
import shutil
from pathlib import Path

import pytest

_FILTERS = Path("/proc/sys/kernel/seccomp/actions_avail")


def _missing() -> str | None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return (
            f"blocks run on Linux on x86-64 only, not on {platform.system()} {platform.machine()}"
        )
    if not _FILTERS.exists():
        return f"this kernel has no seccomp filters ({_FILTERS} is absent), which the sandbox needs"
    return None


needs_sandbox = pytest.mark.skipif(_missing() is not None, reason=_missing() or "")
"""Skips what runs blocks in the measuring harness where no program could do so."""

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is absent")
"""Skips what compares with the counts or the trace of a real run."""
