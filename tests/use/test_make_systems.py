"""``nestor make`` with make, CMake, Meson and autotools."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.use.making import AUTOTOOLS, OZ, digests, make, sources, times

_FILES: Final = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(p LANGUAGES C)
add_library(both STATIC lib.c)
add_executable(app app.c)
target_link_libraries(app both)
""",
    "meson.build": """
project('p', 'c')
both = both_libraries('both', 'lib.c')
executable('app', 'app.c', link_with: both)
""",
    **AUTOTOOLS,
}


@dataclass(frozen=True)
class System:
    """How a build system configures, builds and cleans, in the folder that it is started in."""

    configure: tuple[str, ...]
    build: tuple[str, ...]
    clean: tuple[str, ...]


def _cmake(generator: str) -> System:
    flags = f"-DCMAKE_C_FLAGS={OZ}"
    configure = ("cmake", "-S", "p", "-B", "b", "-G", generator, "-DCMAKE_BUILD_TYPE=None", flags)
    build = ("cmake", "--build", "b")
    return System(configure, build, (*build, "--target", "clean"))


SYSTEMS: Final = {
    "make": System((), ("make", "-C", "p", f"CFLAGS={OZ}"), ("make", "-C", "p", "clean")),
    "cmake make": _cmake("Unix Makefiles"),
    "cmake ninja": _cmake("Ninja"),
    "meson": System(
        ("meson", "setup", "b", "p", "-Dbuildtype=minsize", f"-Dc_args={OZ}"),
        ("ninja", "-C", "b"),
        ("ninja", "-C", "b", "-t", "clean"),
    ),
    "autotools": System(
        ("sh", "-c", f"mkdir -p b && cd b && ../p/configure CFLAGS='{OZ}'"),
        ("make", "-C", "b"),
        ("make", "-C", "b", "clean"),
    ),
}


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_first_build_and_a_clean_one_give_the_same(
    name: str, command: Path, tmp_path: Path
) -> None:
    place = sources(tmp_path / "p")
    system = SYSTEMS[name]
    if name != "make":
        (place / "Makefile").unlink()
        for file, text in _FILES.items():
            (place / file).write_text(text)
    if name == "autotools":
        subprocess.run(["autoreconf", "--install"], cwd=place, check=True, capture_output=True)
    if system.configure:
        done = make(command, system.configure, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    done = make(command, system.build, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    objects = 3 if name == "autotools" else 2  # libtool compiles a library twice
    said = f" of {objects} objects compiled again with the summary of 3 functions"
    assert said in done.stderr
    first, stamps = digests(tmp_path), times(tmp_path)
    assert not any(b".llvmbc" in path.read_bytes() for path in tmp_path.rglob("*.o"))
    for _ in range(2):  # nothing is left to be done
        done = make(command, system.build, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert times(tmp_path) == stamps
    done = make(command, system.clean, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("app"))
    done = make(command, system.build, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(tmp_path) == first
