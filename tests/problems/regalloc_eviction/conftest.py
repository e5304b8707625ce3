"""A small corpus at -O2 whose modules have questions about eviction, and a pool for it."""

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
    """The built-in modules and one that has nothing to evict, in LLVM's plain layout."""
    folder = tmp_path_factory.mktemp("eviction")
    silent = folder / "silent.c"
    silent.write_text("int answer(void) { return 42; }\n")
    names = []
    for source in (probe_folder() / "probe.c", probe_folder() / "probe.cpp", silent):
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
    problem = find_problem("regalloc-eviction")
    with LocalPool(problem, corpus, plugin, PoolSettings(jobs=1)) as opened:
        yield opened
