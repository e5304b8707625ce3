"""The default is stock, policies are not, and every answer keeps the program's meaning."""

import subprocess

import pytest

from nestor.compiler.plugin import Plugin
from tests.plugin.regalloc.support import EVICTORS, MAIN, ORDERERS, Allocator, Deciders
from tests.plugin.support import CXX_SOURCE

DEFAULT: Deciders = {"evict": ["default"], "order": ["default"]}


@pytest.mark.parametrize(
    "flags",
    [["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-g", "-fPIC", "-fsanitize=address"], ["-O0"]],
    ids=" ".join,
)
def test_the_default_is_the_stock_compiler(allocator: Allocator, flags: list[str]) -> None:
    stock = allocator.stock(flags)
    assert allocator.compile(**DEFAULT, flags=flags).bytes == stock
    logs = [f"-nestor-{log}-log={log}" for log in ("eviction", "priority", "allocation")]
    assert allocator.compile(*logs, flags=flags).bytes == stock
    assert allocator.compile("-nestor-best", **DEFAULT, flags=flags).bytes == stock


def test_the_default_is_the_stock_compiler_for_exceptions(allocator: Allocator) -> None:
    unit = {"source": CXX_SOURCE, "name": "unit.cpp"}
    stock = allocator.bench.compile(CXX_SOURCE, name="unit.cpp", flags=["-O2"]).bytes
    assert allocator.compile(**DEFAULT, **unit).bytes == stock
    first = allocator.compile(evict=[EVICTORS["first"]], **unit).bytes
    again = allocator.compile(evict=[EVICTORS["first"]], **unit).bytes
    assert first == again


def test_both_decisions_matter(allocator: Allocator) -> None:
    """Else the other tests compare nothing."""
    objects = [allocator.stock()]
    objects += [allocator.compile(evict=[EVICTORS[name]]).bytes for name in ("first", "keep")]
    objects.append(allocator.compile(order=[ORDERERS["small first"]]).bytes)
    objects.append(
        allocator.compile(evict=[EVICTORS["first"]], order=[ORDERERS["small first"]]).bytes
    )
    assert len(set(objects)) == len(objects)


def test_the_same_command_gives_the_same_object(allocator: Allocator) -> None:
    """With policies, samples, trials and searches; a log or the names of files change nothing."""
    evict, order = [EVICTORS["heaviest"]], [ORDERERS["heavy first"]]
    for options in (
        [],
        ["-nestor-seed=7", "-nestor-temperature=3"],
        ["-nestor-best"],
        ["-nestor-allocation-search=20", "-nestor-allocation-moves=both"],
    ):
        once = allocator.compile(*options, evict=evict, order=order).bytes
        assert allocator.compile(*options, evict=evict, order=order).bytes == once
        logs = [f"-nestor-{log}-log={log}" for log in ("eviction", "priority", "allocation")]
        assert allocator.compile(*options, *logs, evict=evict, order=order).bytes == once


def test_seeds_draw_different_answers(allocator: Allocator) -> None:
    def sampled(seed: int, *more: str) -> bytes:
        options = [f"-nestor-seed={seed}", "-nestor-temperature=3", *more]
        return allocator.compile(*options, evict=[EVICTORS["first"]]).bytes

    assert sampled(1) != sampled(2)
    assert sampled(1) != sampled(1, "-nestor-seed-functions")


POLICIES: dict[str, Deciders] = {
    **{name: Deciders(evict=[policy]) for name, policy in EVICTORS.items()},
    **{f"order {name}": Deciders(order=[policy]) for name, policy in ORDERERS.items()},
    "both": {"evict": [EVICTORS["heaviest"]], "order": [ORDERERS["small first"]]},
}


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_programs_keep_their_meaning(allocator: Allocator, plugin: Plugin, sampled: bool) -> None:
    bench = allocator.bench
    main = bench.compile(MAIN, flags=["-O1"], name="main.c").object

    def output(unit: str) -> str:
        program = bench.folder / "program"
        clang = plugin.toolchain.clang
        subprocess.run([clang, main, bench.folder / unit, "-o", program], check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    allocator.stock()
    expected = output(f"{bench.count}.o")
    options = ["-nestor-seed=3", "-nestor-temperature=1000"] if sampled else []
    for name, policies in POLICIES.items():
        done = allocator.compile(*options, **policies)
        assert done.bytes, name
        assert output(done.object.name) == expected, name
