"""A small corpus at -O2 whose modules ask the register allocator's questions, and pools for it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.problem.registry import find_problem
from nestor.rollout.gate import probe_folder
from nestor.rollout.local_pool import LocalPool, PoolSettings

CC1 = (
    "-cc1 -triple x86_64-pc-linux-gnu -O2 -emit-obj -mrelocation-model pic -pic-level 2"
    " -vectorize-loops -vectorize-slp"
)


@pytest.fixture(scope="session")
def corpus(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two built-in modules, one that asks much and one that asks nothing, in LLVM's layout."""
    folder = tmp_path_factory.mktemp("allocation")
    silent = folder / "silent.c"
    silent.write_text("int answer(void) { return 42; }\n")
    names = []
    pressure = Path(__file__).parent / "pressure.c"
    for source in (pressure, probe_folder() / "probe.c", probe_folder() / "probe.cpp", silent):
        name = f"{source.name}.o"
        command: list[str | Path] = [
            str(toolchain.clang),
            "-O2",
            "-c",
            "-emit-llvm",
            "-Xclang",
            "-disable-llvm-passes",
        ]
        subprocess.run([*command, source, "-o", folder / f"{name}.bc"], check=True, timeout=60)
        (folder / f"{name}.cmd").write_bytes("\0".join(CC1.split()).encode())
        names.append(f'"{name}"')
    (folder / "corpus_description.json").write_text(
        f'{{"has_thinlto": false, "modules": [{", ".join(names)}]}}'
    )
    return store.load(folder)


@pytest.fixture
def pool(corpus: Corpus, plugin: Plugin) -> Iterator[LocalPool]:
    """A pool that compiles for eviction."""
    with pool_for("regalloc-eviction", corpus, plugin) as opened:
        yield opened


@pytest.fixture
def priority_pool(corpus: Corpus, plugin: Plugin) -> Iterator[LocalPool]:
    """A pool that compiles for priority."""
    with pool_for("regalloc-priority", corpus, plugin) as opened:
        yield opened


def pool_for(problem: str, corpus: Corpus, plugin: Plugin) -> LocalPool:
    """Return a pool that compiles for a problem of this name."""
    return LocalPool(find_problem(problem), corpus, plugin, PoolSettings(jobs=1))
