"""Programs whose events are certain, and their runs under the simulators."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.events.simulated.caches import Caches
from nestor.events.simulated.collect import RunSettings, collect
from nestor.events.table import EventTable

SOURCES: Final = Path(__file__).parent

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compiled(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return what compiles a program of this folder, with options of its own."""
    folder = tmp_path_factory.mktemp("events")

    def compile_(name: str, *options: str) -> Path:
        out = folder / "-".join([name, *(option.strip("-") for option in options)])
        if not out.exists():
            words = ["-O1", *(options or ("-static",)), str(SOURCES / f"{name}.c"), "-o", str(out)]
            subprocess.run([toolchain.clang, *words], check=True)
        return out

    return compile_


@pytest.fixture(scope="session")
def branches(compiled: Compile) -> EventTable:
    """Events of ``branches.c``."""
    return collect(compiled("branches"), []).table


@pytest.fixture(scope="session")
def accesses(compiled: Compile) -> EventTable:
    """Events of ``accesses.c``."""
    return collect(compiled("accesses"), []).table


@pytest.fixture(scope="session")
def accesses_without_prefetch(compiled: Compile) -> EventTable:
    """The same where no line is fetched ahead."""
    settings = RunSettings(caches=Caches(prefetch=False))
    return collect(compiled("accesses"), [], settings).table
