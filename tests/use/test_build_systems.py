"""Projects that CMake, Meson, autotools and make build have the objects that they should have."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from benchmarks.build_ways import (
    WAYS,
    Bench,
    Policy,
    Project,
    System,
    autotools,
    cmake,
    make,
    meson,
)
from nestor.compiler.plugin import Plugin
from tests.conftest import SOURCE
from tests.use.conftest import PRESSURE
from tests.use.making import AUTOTOOLS

_FILES: Final = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(p LANGUAGES C CXX)
add_library(both STATIC lib.c)
add_executable(app app.c)
target_link_libraries(app both)
""",
    "meson.build": """
project('p', 'c', 'cpp')
both = both_libraries('both', 'lib.c')
executable('app', 'app.c', link_with: both)
""",
    "Makefile": """
app: app.o lib.o
\t$(CC) $(CFLAGS) -o $@ $^
%.o: %.c
\t$(CC) $(CFLAGS) -c $< -o $@
""",
    **AUTOTOOLS,
}
_SYSTEMS: Final[dict[str, System]] = {
    "cmake Release": cmake("Release"),
    "cmake MinSizeRel": cmake("MinSizeRel"),
    "meson": meson(),
    "make": make(),
    "autotools": autotools(),
}


def _write(folder: Path, system: str, source: str = SOURCE) -> Path:
    """Write the sources, as a tarball of a release would have them."""
    folder.mkdir()
    (folder / "app.c").write_text(source)
    library = source.replace("int main", "int use").replace("twice", "library_twice")
    (folder / "lib.c").write_text(library)
    for name, text in _FILES.items():
        if (name == "Makefile") == (system == "make"):
            (folder / name).write_text(text)
    if system == "autotools":
        subprocess.run(["autoreconf", "--install"], cwd=folder, check=True, capture_output=True)
    return folder


def _check(bench: Bench, policy: Policy, folder: Path) -> None:
    """Check that each way to build gives the objects of the options, all other than stock's."""
    stock = bench.stock(policy.clang)
    expected = bench.direct(policy.flags())
    assert len(expected) == (3 if bench.project.place == "autotools" else 2)  # libtool: one twice
    assert all(expected[name] != digest for name, digest in stock.objects.items())
    for way in WAYS:
        use = policy.compilers(way, folder / "installed")
        if not way.startswith("ccache"):
            assert bench.build(use).objects == expected, way
            continue
        cold, warm = bench.cached(use, folder / way)
        assert cold.objects == warm.objects == expected, way
        assert (cold.cached, warm.cached) == ((0, len(expected)), (len(expected),) * 2), way


@pytest.mark.parametrize("system", _SYSTEMS)
def test_objects_are_those_of_the_options(system: str, never: Policy, tmp_path: Path) -> None:
    sources = _write(tmp_path / "p", system)
    bench = Bench(Project("p", system, sources, _SYSTEMS[system]), tmp_path / "work")
    _check(bench, never, tmp_path)


@pytest.mark.parametrize("system", ["cmake Release", "meson", "make", "autotools"])
def test_register_allocation_at_o2(system: str, keep: Policy, tmp_path: Path) -> None:
    sources = _write(tmp_path / "p", system, PRESSURE)
    project = Project("p", system, sources, _SYSTEMS[system], level="-O2")
    _check(Bench(project, tmp_path / "work"), keep, tmp_path)


def test_at_the_level_of_a_build_type_objects_are_stock(
    never: Policy, plugin: Plugin, tmp_path: Path
) -> None:
    """CMake's own ``-O3`` comes last and wins; the policy was made for ``-Oz``."""
    sources = _write(tmp_path / "p", "cmake")
    project = Project("p", "cmake", sources, _SYSTEMS["cmake Release"], level="-O3")
    bench = Bench(project, tmp_path / "work")
    stock = bench.stock(plugin.toolchain.clang)
    for way in ("flags", "installed"):
        use = never.compilers(way, tmp_path / "installed")
        assert bench.build(use).objects == stock.objects, way
