"""The guard: no program larger than stock in any link mode, and no more goes back than must."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.program_summary import module_id
from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import LinkMode
from nestor.evaluate.guard import GuardError, Objects, guard
from nestor.rollout.pool import Pool
from tests.conftest import make_corpus

MODES: tuple[LinkMode, ...] = ("gc", "no-gc", "icf")


def module(used: int, unused: int, name: str) -> str:
    """C of two functions with so many calls each; one is used, and none is equal to another."""
    number = ord(name)
    return (
        "extern int getchar(void);\n"
        f"int {name}(void) {{ {'getchar(); ' * used} return {number}; }}\n"
        f"int {name}_unused(void) {{ {'getchar(); ' * unused} return -{number}; }}\n"
    )


MAIN = "extern int a(void), b(void); int main(void) { return a() + b(); }"
STOCK = {"a": module(20, 20, "a"), "b": module(20, 20, "b"), "main": MAIN}
MAKEFILE = "p: a.o b.o main.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"


@pytest.fixture
def corpus(tmp_path: Path, plugin: Plugin) -> Corpus:
    """Two programs of the same three source files' names."""
    builds = {}
    for project in ("one", "two"):
        folder = tmp_path / "sources" / project
        folder.mkdir(parents=True)
        for name, text in STOCK.items():
            (folder / f"{name}.c").write_text(f"{text}\nint {project}_{name};")
        builds[project] = (folder, MAKEFILE)
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, builds)


class Builder:
    """Makes a program's objects from some sources, and from others "under the policy"."""

    def __init__(self, folder: Path, corpus: Corpus, plugin: Plugin):
        self.folder, self.corpus, self.plugin = folder, corpus, plugin
        self.stock = dict(STOCK)

    def __call__(self, name: str, policy: Mapping[str, str]) -> Objects:
        program = self.corpus.program(name)
        here = self.folder / name
        stock = self._compile(program, here / "stock", self.stock)
        changed = self._compile(program, here / "policy", self.stock | dict(policy))
        return Objects(program, stock, dict.fromkeys(MODES, changed))

    def _compile(self, program: Program, folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
        folder.mkdir(parents=True)
        clang = [str(self.plugin.toolchain.clang), "-Oz", "-ffunction-sections", "-c"]
        objects = {}
        for module in program.modules:
            source = folder / f"{Path(module).stem}.c"
            source.write_text(texts[source.stem])
            objects[module] = source.with_suffix(".o")
            subprocess.run([*clang, str(source), "-o", str(objects[module])], check=True)
        return objects


@pytest.fixture
def build(tmp_path: Path, corpus: Corpus, plugin: Plugin) -> Builder:
    return Builder(tmp_path / "objects", corpus, plugin)


def test_only_what_grew_goes_back(build: Builder, corpus: Corpus, plugin: Plugin) -> None:
    mixed = build("one/p", {"a": module(60, 20, "a"), "b": module(5, 20, "b")})
    with Pool(corpus, plugin) as pool:
        result = guard(pool, [mixed], MODES)
    (program,) = result.programs
    assert program.back == ("one/a.o",)
    assert result.keys == {module_id("a.c")}
    assert result.names == {module_id("a.c"): ("one/a.o",)}
    for mode in MODES:
        assert program.guarded[mode] < program.stock[mode] < program.policy[mode]


@pytest.mark.parametrize(
    ("modes", "back"), [(("gc",), ()), (("gc", "no-gc"), ("one/a.o",)), (("no-gc",), ("one/a.o",))]
)
def test_every_asked_mode_counts(
    build: Builder,
    corpus: Corpus,
    plugin: Plugin,
    modes: tuple[LinkMode, ...],
    back: tuple[str, ...],
) -> None:
    """The module saves more with unused functions dropped than it costs with them kept."""
    uneven = build("one/p", {"a": module(5, 41, "a")})
    with Pool(corpus, plugin) as pool:
        (program,) = guard(pool, [uneven], modes).programs
    assert program.back == back
    assert all(program.guarded[mode] <= program.stock[mode] for mode in modes)
    if "no-gc" in modes:
        assert program.policy["no-gc"] > program.stock["no-gc"]


def test_a_smaller_function_that_is_merged_no_more_goes_back(
    build: Builder, corpus: Corpus, plugin: Plugin
) -> None:
    """Of two equal functions --icf keeps one, so making one of them smaller costs bytes."""
    same = module(20, 20, "a").replace("int a", "int b")
    build.stock["b"] = same
    smaller = build("one/p", {"b": module(15, 20, "a").replace("int a", "int b")})
    with Pool(corpus, plugin) as pool:
        (kept,) = guard(pool, [smaller], ("gc", "no-gc")).programs
        (back,) = guard(pool, [smaller], MODES).programs
    assert (kept.back, back.back) == ((), ("one/b.o",))
    assert back.policy["icf"] > back.stock["icf"]


def test_a_policy_that_only_saves_is_left_alone(
    build: Builder, corpus: Corpus, plugin: Plugin
) -> None:
    better = build("one/p", {"a": module(5, 5, "a"), "b": module(5, 5, "b")})
    with Pool(corpus, plugin) as pool:
        result = guard(pool, [better], MODES)
    assert result.keys == frozenset()
    assert result.programs[0].guarded == result.programs[0].policy


def test_one_list_serves_programs_that_share_a_name(
    build: Builder, corpus: Corpus, plugin: Plugin
) -> None:
    """What program two must send back, program one, which came first, sends back as well."""
    builds = [
        build("one/p", {"a": module(5, 20, "a"), "b": module(5, 20, "b")}),
        build("two/p", {"a": module(60, 20, "a"), "b": module(5, 20, "b")}),
    ]
    with Pool(corpus, plugin) as pool:
        result = guard(pool, builds, MODES)
    assert result.keys == {module_id("a.c")}
    assert [p.back for p in result.programs] == [("one/a.o",), ("two/a.o",)]
    for program in result.programs:
        assert all(program.guarded[mode] < program.stock[mode] for mode in MODES)


def test_what_does_not_link_is_an_error(build: Builder, corpus: Corpus, plugin: Plugin) -> None:
    broken = build("one/p", {"a": "int not_a;"})
    with Pool(corpus, plugin) as pool, pytest.raises(GuardError, match="one/p: link"):
        guard(pool, [broken], MODES)
