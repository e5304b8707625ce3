"""The guard: no program larger than stock in any link mode, and no more goes back than must.

What is compiled is C whose text says how large each function is: one text for the stock compiler
and one "under the policy".
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from nestor.build.link import LinkBuild
from nestor.compiler.objects import measure
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Program
from nestor.evaluate.guard import Guard, GuardError, guard
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import COLUMNS, DEFAULT
from nestor.problems.inlining_size.problem import InliningSize
from nestor.problems.inlining_size.search.overrides import Key, parse
from nestor.problems.inlining_size.summary.program_summary import module_id
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM, policy_named

MODES = ("gc", "no-gc", "icf")


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


@dataclass(frozen=True)
class Texts(InliningSize):
    """A problem whose policy compiles other texts in place of some modules'."""

    stock: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By program and the name of the source file."""

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile the module's text, or the policy's unless an override leaves it to stock."""
        program, _, name = request.unit.name.removesuffix(".o").partition("/")
        module = module_id(f"{name}.c")
        own = self.changed.get(program, {})
        back = Key("module", module) in parse(request.overrides or "nestor-overrides 1")
        if request.policy is None or request.policy.policy is None or back:
            own = {}
        source = place.files.write(own.get(name, self.stock[name]).encode())
        clang = [str(place.plugin.toolchain.clang), "-Oz", "-ffunction-sections", "-c", "-xc"]
        out = source.with_name(f"{program}-{name}-{source.name}.o")
        subprocess.run([*clang, str(source), "-o", str(out)], check=True)
        records = np.zeros(0, [(name, "<i8") for name in COLUMNS])
        asked = Trajectory((), records, DEFAULT, facts={"module": module})
        return Rollout(request, measure(out), asked, 0.0, None, place.objects.put(out))


@dataclass
class Builder:
    """Guards programs that are compiled from texts."""

    corpus: Corpus
    plugin: Plugin
    stock: dict[str, str] = field(default_factory=lambda: dict(STOCK))
    changed: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __call__(self, name: str, policy: Mapping[str, str]) -> Program:
        """Return the program ``name``; its policy compiles the texts of ``policy``."""
        program = self.corpus.program(name)
        self.changed[program.project] = policy
        return program

    def guard(self, programs: list[Program], modes: tuple[str, ...] = MODES) -> Guard:
        """Guard ``programs``."""
        fields = {name: getattr(PROBLEM, name) for name in PROBLEM.__dataclass_fields__}
        problem = Texts(**fields, stock=self.stock, changed=self.changed)
        with LocalPool(problem, self.corpus, self.plugin) as pool:
            return guard(pool, LinkBuild(), programs, policy_named("never"), modes)


@pytest.fixture
def build(corpus: Corpus, plugin: Plugin) -> Builder:
    return Builder(corpus, plugin)


def test_only_what_grew_goes_back(build: Builder) -> None:
    mixed = build("one/p", {"a": module(60, 20, "a"), "b": module(5, 20, "b")})
    result = build.guard([mixed], MODES)
    (program,) = result.programs
    assert program.back == ("one/a.o",)
    assert result.keys == {Key("module", module_id("a.c"))}
    assert result.names == {Key("module", module_id("a.c")): ("one/a.o",)}
    for mode in MODES:
        assert program.guarded[mode] < program.stock[mode] < program.policy[mode]


@pytest.mark.parametrize(
    ("modes", "back"), [(("gc",), ()), (("gc", "no-gc"), ("one/a.o",)), (("no-gc",), ("one/a.o",))]
)
def test_every_asked_mode_counts(
    build: Builder,
    modes: tuple[str, ...],
    back: tuple[str, ...],
) -> None:
    """The module saves more with unused functions dropped than it costs with them kept."""
    uneven = build("one/p", {"a": module(5, 41, "a")})
    (program,) = build.guard([uneven], modes).programs
    assert program.back == back
    assert all(program.guarded[mode] <= program.stock[mode] for mode in modes)
    if "no-gc" in modes:
        assert program.policy["no-gc"] > program.stock["no-gc"]


def test_a_smaller_function_that_is_merged_no_more_goes_back(build: Builder) -> None:
    """Of two equal functions --icf keeps one, so making one of them smaller costs bytes."""
    same = module(20, 20, "a").replace("int a", "int b")
    build.stock["b"] = same
    smaller = build("one/p", {"b": module(15, 20, "a").replace("int a", "int b")})
    (kept,) = build.guard([smaller], ("gc", "no-gc")).programs
    (back,) = build.guard([smaller], MODES).programs
    assert (kept.back, back.back) == ((), ("one/b.o",))
    assert back.policy["icf"] > back.stock["icf"]


def test_a_policy_that_only_saves_is_left_alone(build: Builder) -> None:
    better = build("one/p", {"a": module(5, 5, "a"), "b": module(5, 5, "b")})
    result = build.guard([better], MODES)
    assert result.keys == frozenset()
    assert result.programs[0].guarded == result.programs[0].policy


def test_one_list_serves_programs_that_share_a_name(build: Builder) -> None:
    """What program two must send back, program one, which came first, sends back as well."""
    builds = [
        build("one/p", {"a": module(5, 20, "a"), "b": module(5, 20, "b")}),
        build("two/p", {"a": module(60, 20, "a"), "b": module(5, 20, "b")}),
    ]
    result = build.guard(builds, MODES)
    assert result.keys == {Key("module", module_id("a.c"))}
    assert [p.back for p in result.programs] == [("one/a.o",), ("two/a.o",)]
    for program in result.programs:
        assert all(program.guarded[mode] < program.stock[mode] for mode in MODES)


def test_what_does_not_link_is_an_error(build: Builder) -> None:
    broken = build("one/p", {"a": "int not_a;"})
    with pytest.raises(GuardError, match="one/p: link"):
        build.guard([broken], MODES)
