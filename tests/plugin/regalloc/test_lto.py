"""In lld's LTO: the default is stock, policies decide, and trials need a process of one thread."""

import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.plugin.regalloc.support import EVICTORS, MAIN, SOURCE, Allocator, read_allocations


class Linker:
    """Links SOURCE and MAIN by LTO."""

    def __init__(self, allocator: Allocator, plugin: Plugin, mode: str) -> None:
        self.plugin, self.folder = plugin, allocator.bench.folder
        self.flags = ["-O2", f"-flto={mode}"]
        self.objects = []
        for name, text in (("unit.c", SOURCE), ("main.c", MAIN)):
            done = allocator.bench.compile(text, flags=self.flags, name=name)
            assert done.bytes
            self.objects.append(done.object)

    def link(self, *options: str, threads: int | None = None) -> Path:
        out = self.folder / "program"
        clang = self.plugin.toolchain.clang
        command = [clang, *self.flags, "-fuse-ld=lld", *self.objects, "-o", out]
        if options:
            command.append(f"-Wl,--load-pass-plugin={self.plugin.path}")
            options = (f"-load={self.plugin.path}", *options)
        command += [f"-Wl,-mllvm,{option}" for option in options]
        command += [f"-Wl,--threads={threads}"] if threads else []
        subprocess.run([str(word) for word in command], check=True, cwd=self.folder)
        return out


@pytest.fixture(params=["full", "thin"])
def linker(allocator: Allocator, plugin: Plugin, request: pytest.FixtureRequest) -> Linker:
    return Linker(allocator, plugin, request.param)


def output(program: Path) -> str:
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_the_default_is_stock_and_policies_are_not(linker: Linker, allocator: Allocator) -> None:
    program = linker.link()
    stock, expected = program.read_bytes(), output(program)
    logs = linker.folder / "logs"
    options = ["-nestor-eviction=default", "-nestor-priority=default"]
    assert linker.link(*options).read_bytes() == stock
    options.append(f"-nestor-allocation-log={logs}/")
    assert linker.link(*options).read_bytes() == stock
    functions = [name for log in logs.iterdir() for name in read_allocations(log)]
    assert "main" in functions
    first = allocator.bench.save(EVICTORS["first"])
    program = linker.link(f"-nestor-eviction={first}")
    assert program.read_bytes() != stock
    assert output(program) == expected


def test_trials_where_there_is_one_thread(allocator: Allocator, plugin: Plugin) -> None:
    linker = Linker(allocator, plugin, "full")
    first = allocator.bench.save(EVICTORS["first"])
    trials = {}
    for threads in (1, 2):
        logs = linker.folder / f"logs-{threads}"
        options = [f"-nestor-eviction={first}", "-nestor-best", f"-nestor-allocation-log={logs}/"]
        expected = output(linker.link())
        assert output(linker.link(*options, threads=threads)) == expected
        (log,) = logs.iterdir()
        trials[threads] = sum(f["trials"] for f in read_allocations(log).values())
    assert trials[1] > 0
    assert trials[2] == 0
