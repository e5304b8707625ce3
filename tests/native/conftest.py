"""The C++ test programs, built once with sanitizers."""

import fcntl
import shutil
from pathlib import Path

import pytest

from nestor.compiler.built import digest_of
from nestor.compiler.plugin import Plugin, cache_folder, configure_and_build, sources_digest
from nestor.compiler.toolchain import Toolchain

HERE = Path(__file__).parent
PROGRAMS = ("nestor-tests", "rule-cases")


@pytest.fixture(scope="session")
def programs(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the test programs, built for this compiler and these sources."""
    return build_programs(toolchain, tmp_path_factory)


@pytest.fixture(scope="session")
def older_programs(older_plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for the oldest release of LLVM that is tested."""
    return build_programs(older_plugin.toolchain, tmp_path_factory)


def build_programs(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the test programs for a compiler unless it was done, and return their folder."""
    own = tmp_path_factory.mktemp("sources")
    for file in HERE.iterdir():
        if file.suffix in (".cpp", ".h", ".txt"):
            shutil.copy(file, own)
    digest = digest_of(own, sources_digest(toolchain.build_id))
    folder = cache_folder() / "tests" / digest
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((folder / name).exists() for name in PROGRAMS):
            build = folder / "build"
            shutil.rmtree(build, ignore_errors=True)  # of a failed build, perhaps of other sources
            definitions = ["-DNESTOR_BUILD_TESTS=ON", f"-DNESTOR_TESTS_DIR={HERE}"]
            configure_and_build(toolchain, build, definitions)
            for name in PROGRAMS:
                (build / "tests" / name).replace(folder / name)
            shutil.rmtree(build)
    return folder
