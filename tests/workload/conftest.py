"""A corpus of two programs with workloads, captured at -O2, and builds of them."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.capture import merge
from nestor.corpus.capture.build import Wrappers
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL
from nestor.corpus.model import Corpus, Program, Workload
from nestor.corpus.relink import link_command

# Pressure on the registers, so that questions about eviction arise.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long mix(const long *a, long n) {
  long s[20], t = n;
  for (int k = 0; k < 20; ++k) s[k] = k * n;
  for (long i = 0; i + 20 < n; ++i) {
#pragma unroll
    for (int k = 0; k < 20; ++k) s[k] = (s[k] + a[i + k]) ^ s[(k + 7) % 20];
  }
  for (int k = 0; k < 20; ++k) t ^= s[k] << k;
  return t;
}
__attribute__((noinline)) static long step(long v) { return v * 3 + 1; }
int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 0, sum = 0, a[64];
  for (long i = 0; i < 64; ++i) a[i] = i * i;
  for (long i = 0; i < rounds; ++i) { a[i % 64] = sum; sum = step(sum) + mix(a, 64); }
  printf("%ld\\n", sum);
  return rounds == 0;
}
"""


@pytest.fixture(scope="session")
def workloads(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two programs that do 40 and 70 rounds of the same work."""
    folder = tmp_path_factory.mktemp("workloads")
    root = folder / "corpus"
    for name in ("first", "second"):
        source = folder / name
        source.mkdir()
        (source / f"{name}.c").write_text(SOURCE)
        wrappers = Wrappers(toolchain, folder / "bin", root, name, source, "-O2").write()
        for words in (["-c", f"{name}.c"], [f"{name}.o", "-o", name]):
            subprocess.run(
                [str(wrappers.cc), *words], cwd=source, env=wrappers.environment(), check=True
            )
    corpus = merge.finalise(root, Journal(root / JOURNAL), toolchain=toolchain.version)
    runs = {"first": Workload(("40",), (("9",),)), "second": Workload(("70",), (("9",),))}
    corpus = replace(
        corpus,
        programs=tuple(replace(p, workload=runs[p.project]) for p in corpus.programs),
    )
    store.save(corpus)
    return store.load(root)


BuildProgram = Callable[..., Path]


@pytest.fixture
def built(workloads: Corpus, toolchain: Toolchain, tmp_path: Path) -> BuildProgram:
    """Return what builds a program of the corpus, with more options of code generation."""

    def build(program: Program, *options: str) -> Path:
        objects = {}
        for number, name in enumerate(program.modules):
            module, out = workloads.module(name), tmp_path / f"{number}{len(options)}.o"
            options_of = [*module.options, *options]
            subprocess.run(
                [toolchain.clang, *options_of, "-x", "ir", workloads.bitcode(module), "-o", out],
                check=True,
            )
            objects[name] = out
        binary = tmp_path / f"built{len(options)}-{program.project}"
        subprocess.run(link_command(toolchain, workloads, program, objects, binary), check=True)
        return binary

    return build
