"""Runs the C++ unit tests."""

import os
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize("built", ["programs", "older_programs"])
def test_native(built: str, request: pytest.FixtureRequest) -> None:
    programs: Path = request.getfixturevalue(built)
    options = {"ASAN_OPTIONS": "abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run(
        [programs / "nestor-tests", "--no-colors"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
        env={**os.environ, **options},
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"\n{output}"
    assert "Status: SUCCESS!" in output
