"""After a policy has changed, builds make again what depends on it; the recipes are the guide's."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nestor.compiler.plugin import Plugin
from tests.conftest import ROOT, SOURCE
from tests.use.conftest import save_policy
from tests.use.test_flags import compiled, flags

GUIDE: Final = ROOT / "docs" / "guide" / "build-systems.md"


def recipe(title: str) -> str:
    """Return the block of the guide whose first line is the comment ``title``."""
    found = re.search(rf"^```\w+\n# {re.escape(title)}\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert found, f"the guide has no block '{title}'"
    return found[1]


def _make(folder: Path) -> Callable[[], Path]:
    (folder / "Makefile").write_text("all: x.o\n" + recipe("Makefile"))

    def build() -> Path:
        words = ["make", "CC=clang-22", "CFLAGS=-Oz"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        return folder / "x.o"

    return build


def _cmake(folder: Path) -> Callable[[], Path]:
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C CXX)\n"
        + recipe("CMakeLists.txt")
        + "add_library(x OBJECT x.c)\n"
    )
    compilers = ["-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22"]
    configure = ["cmake", "-B", "build", "-G", "Ninja", *compilers, "-DCMAKE_C_FLAGS=-Oz"]
    subprocess.run(configure, cwd=folder, check=True, capture_output=True)

    def build() -> Path:
        subprocess.run(["ninja", "-C", "build"], cwd=folder, check=True, capture_output=True)
        return folder / "build" / "CMakeFiles" / "x.dir" / "x.c.o"

    return build


@pytest.mark.parametrize("system", [_make, _cmake])
def test_a_changed_policy_is_compiled_with(
    system: Callable[[Path], Callable[[], Path]], command: Path, plugin: Plugin, tmp_path: Path
) -> None:
    policy = tmp_path / "my.safetensors"
    (tmp_path / "x.c").write_text(SOURCE)
    save_policy(policy, inline=False)
    build = system(tmp_path)
    made = []
    for inline in (False, True):
        save_policy(policy, inline=inline)
        made.append(build().read_bytes())
        expected = compiled(plugin.toolchain.clang, *flags(command, policy), cwd=_beside(tmp_path))
        assert made[-1] == expected
    assert made[0] != made[1]
    before = build().stat().st_mtime_ns
    assert build().stat().st_mtime_ns == before, "without a change nothing is compiled"


def _beside(folder: Path) -> Path:
    """Return another folder with the source, whose objects are the same."""
    other = folder / "beside"
    other.mkdir(exist_ok=True)
    (other / "x.c").write_text((folder / "x.c").read_text())
    return other


def test_ninja_and_meson_compile_again_after_they_are_configured_again(
    command: Path, plugin: Plugin, tmp_path: Path
) -> None:
    policy = tmp_path / "my.safetensors"
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "meson.build").write_text("project('p', 'c')\nstatic_library('x', 'x.c')\n")
    made = []
    for inline, words in ((False, ["setup"]), (True, ["configure"])):
        save_policy(policy, inline=inline)
        options = " ".join(flags(command, policy))
        each = ["-Dbuildtype=minsize", "-Dwerror=true", f"-Dc_args={options}"]
        for line in (["meson", *words, "build", *each], ["ninja", "-C", "build"]):
            subprocess.run(
                line,
                cwd=tmp_path,
                env=os.environ | {"CC": str(plugin.toolchain.clang)},
                check=True,
                capture_output=True,
            )
        (made_object,) = (tmp_path / "build").rglob("x.c.o")
        made.append(made_object.read_bytes())
    assert made[0] != made[1]
