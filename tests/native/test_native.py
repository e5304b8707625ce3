"""Builds the C++ unit tests once, with sanitizers, and runs them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nestor.compiler import toolchain as toolchains
from nestor.compiler.plugin import cache_folder, configure_and_build, source_folder

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def binary() -> Path:
    """The test program, built for this compiler and these sources."""
    toolchain = toolchains.find()
    digest = hashlib.sha256(toolchain.build_id.encode())
    for folder in (source_folder(), HERE):
        for file in sorted(folder.iterdir()):
            if file.suffix in (".cpp", ".h", ".txt"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    folder = cache_folder() / "tests" / digest.hexdigest()[:24]
    built = folder / "nestor-tests"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            build = folder / "build"
            definitions = ["-DNESTOR_BUILD_TESTS=ON", f"-DNESTOR_TESTS_DIR={HERE}"]
            configure_and_build(toolchain, build, definitions)
            (build / "tests" / "nestor-tests").replace(built)
            shutil.rmtree(build)
    return built


def test_native(binary: Path) -> None:
    options = {"ASAN_OPTIONS": "abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run(
        [binary, "--no-colors"],
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
