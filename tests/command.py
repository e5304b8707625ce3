"""The command ``nestor`` in a process of its own."""

import subprocess
import sys
from pathlib import Path


def nestor(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the command and return how it ended."""
    command = [sys.executable, "-m", "nestor", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
