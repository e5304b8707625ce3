"""The C++ test programs, built once with sanitizers."""

import fcntl
import shutil
from pathlib import Path

import pytest

from nestor.compiler import toolchain as toolchains
from nestor.compiler.built import digest_of
from nestor.compiler.plugin import cache_folder, configure_and_build, sources_digest

HERE = Path(__file__).parent
PROGRAMS = ("nestor-tests", "rule-cases")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the test programs, built for this compiler and these sources."""
    toolchain = toolchains.find()
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
            definitions = ["-DNESTOR_BUILD_TESTS=ON", f"-DNESTOR_TESTS_DIR={HERE}"]
            configure_and_build(toolchain, build, definitions)
            for name in PROGRAMS:
                (build / "tests" / name).replace(folder / name)
            shutil.rmtree(build)
    return folder
