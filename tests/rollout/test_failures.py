"""What goes wrong in one compile costs that compile: each kind of failure is injected."""

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Module
from nestor.policy.names import DEFAULT
from nestor.problem.rollout import Request
from nestor.problems.inlining_size import PROBLEM
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.conftest import SOURCE, make_corpus, module_named

ENDLESS = """
#define R(x) x x x x x x x x
#define N for (int i = 0; i < n; ++i) s += s * i ^ (s >> 3) ^ a[s & 7];
int big(int n, int *a) { int s = n; R(R(R(R(R(N))))) return s; }
int main(void) { return 0; }
"""
"""Tens of thousands of loops: compiling them takes far longer than any test waits."""


def corrupt(corpus: Corpus, module: Module) -> None:
    bitcode = corpus.bitcode(module)
    bitcode.write_bytes(bitcode.read_bytes()[: bitcode.stat().st_size // 2])


def test_corrupt_module_fails_alone(small_corpus: Corpus, plugin: Plugin) -> None:
    bad = module_named(small_corpus, "one")
    corrupt(small_corpus, bad)
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        done = pool.run([Request(m, DEFAULT, log=True) for m in small_corpus.modules])
    by_name = {r.request.unit.name: r for r in done}
    assert "error" in (by_name[bad.name].failure or "")
    good = by_name[module_named(small_corpus, "two").name]
    assert good.ok
    assert good.trajectory is not None
    assert len(good.trajectory) > 0


def test_time_out(toolchain_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, toolchain_corpus, plugin, PoolSettings(timeout=1.5)) as pool:
        done = pool.run([Request(m) for m in toolchain_corpus.modules])
    failures = {r.request.unit.project: r.failure for r in done}
    assert failures["endless"] is not None
    assert failures["endless"].startswith("timeout")
    assert failures["quick"] is None


@pytest.fixture
def toolchain_corpus(tmp_path: Path, plugin: Plugin) -> Corpus:
    """A module that compiles at once beside one that does not end; captured without objects."""
    corpus = make_corpus(
        tmp_path / "corpus", plugin.toolchain, {"quick": SOURCE, "endless": SOURCE}
    )
    module = module_named(corpus, "endless")
    source = tmp_path / "endless.c"
    source.write_text(ENDLESS)
    flags = ["-O2", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", str(source)]
    os.spawnv(
        os.P_WAIT,
        plugin.toolchain.clang,
        ["clang", *flags, "-o", str(corpus.bitcode(module))],
    )
    options = tuple("-O2" if word == "-Oz" else word for word in module.options)
    others = tuple(m for m in corpus.modules if m is not module)
    return replace(corpus, modules=(*others, replace(module, options=options)))


def test_memory_limit(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin, PoolSettings(memory=16)) as pool:
        done = pool.run([Request(m) for m in small_corpus.modules])
    assert all(r.failure is not None for r in done)


def test_killed_worker_fails_alone(toolchain_corpus: Corpus, plugin: Plugin) -> None:
    killer = threading.Thread(target=_kill_compiler_of, args=("endless",))
    killer.start()
    with LocalPool(PROBLEM, toolchain_corpus, plugin, PoolSettings(timeout=60)) as pool:
        done = pool.run([Request(m) for m in toolchain_corpus.modules])
    killer.join()
    failures = {r.request.unit.project: r.failure for r in done}
    assert failures["endless"] is not None
    assert failures["endless"].startswith("crashed")
    assert failures["quick"] is None


def _kill_compiler_of(part: str) -> None:
    """Kill the compiler that works on a file whose path contains ``part``."""
    for _ in range(2000):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == os.getpid() and any(part.encode() in w and b".bc" in w for w in words):
                time.sleep(0.2)
                os.kill(int(process.name), signal.SIGKILL)
                return
        time.sleep(0.005)


def test_full_disk_is_a_failure_with_its_reason(
    small_corpus: Corpus, plugin: Plugin, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(full_disk))
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        done = pool.run([Request(m, DEFAULT, log=True) for m in small_corpus.modules])
    failures = [r.failure for r in done]
    assert all(f is not None and "No space left" in f for f in failures), failures


def test_cancelling_ends_at_once(toolchain_corpus: Corpus, plugin: Plugin) -> None:
    start = time.monotonic()
    with LocalPool(PROBLEM, toolchain_corpus, plugin, PoolSettings(timeout=60)) as pool:
        threading.Timer(0.7, pool.cancel).start()
        done = pool.run([Request(module_named(toolchain_corpus, "endless"))] * 4)
    assert time.monotonic() - start < 20
    assert all(r.failure is not None for r in done)
    assert any("cancelled" in (r.failure or "") for r in done)


def test_missing_bitcode(small_corpus: Corpus, plugin: Plugin) -> None:
    shutil.rmtree(small_corpus.bitcode(small_corpus.modules[0]).parent)
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        (done,) = pool.run([Request(small_corpus.modules[0])])
    assert done.failure is not None
    assert "no such file" in done.failure.lower()
