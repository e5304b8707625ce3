"""Search on the real compiler: never larger than stock, resumable, and usable by plain clang."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.build.unit_build import UnitBuilder
from nestor.compiler.objects import measure
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT
from nestor.problem.rollout import Request, Rollout
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.problems.inlining_size.search.moves import callee_moves, site_moves
from nestor.problems.inlining_size.search.overrides import Key, parse
from nestor.problems.inlining_size.search.sites import Site, SiteReach, pins_of, sites_of
from nestor.progress import Progress, silent
from nestor.rollout.layered import LayeredPool
from nestor.rollout.local_pool import LocalPool
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune
from tests.conftest import make_corpus
from tests.inlining import LINK, PROBLEM, policy_named

# Helpers that the stock heuristic keeps as functions of their own: with two calls each, inlining
# them costs a few bytes of code and saves a function with its unwind entry.
HELPERS = """
struct Guard { int *p; explicit Guard(int *q) : p(q) { ++*p; } ~Guard(); };
static int blend(int a, int b) { return (((a * 7 + b) ^ (b >> 3)) + ((a << 5) | (b & 9))) * 3; }
int %s(int *a, int n) { Guard g(a); return blend(a[0], n); }
int more_%s(int *a, int n) { Guard g(a); return blend(n, a[1]) - n; }
"""


@pytest.fixture
def corpus(tmp_path: Path, plugin: Plugin) -> Corpus:
    """One C++ program of three modules."""
    work = tmp_path / "src"
    work.mkdir()
    for name in ("a", "b"):
        (work / f"{name}.cpp").write_text(HELPERS % (name, name))
    (work / "main.cpp").write_text(
        "struct Guard { int *p; ~Guard(); }; Guard::~Guard() { --*p; }"
        "int a(int *, int); int b(int *, int); int more_a(int *, int); int more_b(int *, int);"
        "int main(int n, char **) { int v[4] = {n, 2, 3, 4};"
        " return (a(v, n) + b(v, n) + more_a(v, n) + more_b(v, n)) & 1; }"
    )
    make = (
        "program: a.o b.o main.o\n\t$(CXX) -o $@ $^\n"
        "%.o: %.cpp\n\t$(CXX) -O2 -ffunction-sections -c $<\n"
    )
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})


def run(corpus: Corpus, plugin: Plugin, folder: Path, compiles: float, seed: int = 0) -> Tuned:
    (program,) = corpus.programs
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        return tune(
            pool,
            LINK,
            program,
            policy_named("default"),
            TuneSettings(("gc",), sweep=False),
            SearchSettings(compiles=compiles),
            seed,
            folder,
        )


def test_a_search_pays_and_is_never_larger(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    found = run(corpus, plugin, tmp_path / "tuned", 18)
    assert found.best.total < found.stock.scores()["gc"] == found.curve[0].total
    assert found.overrides
    totals = [point.total for point in found.curve]
    assert totals == sorted(totals, reverse=True)
    assert set(found.best.columns) == {"gc", "no-gc", "icf"}, (
        "also those that were not searched for"
    )
    again = parse(found.text(PROBLEM))
    assert again == found.overrides, "every comment leaves the file readable"
    assert "blend(int, int)" in found.text(PROBLEM), "names are those of the source"


BLENDS = """
static int blend_%s(int a, int b) { return (((a * 7 + b) ^ (b >> 3)) + ((a << 5) | (b & 9))) * 3; }
int %s(int *a, int n) { return blend_%s(a[0], n); }
int more_%s(int *a, int n) { return blend_%s(n, a[1]) - n; }
"""


def test_a_program_of_one_module_takes_no_more_compiles_than_it_may(
    plugin: Plugin, tmp_path: Path
) -> None:
    source = "".join(BLENDS.replace("%s", name) for name in ("a", "b", "c", "d", "e"))
    source += "int main(int n, char **v) { return a(&n, n) + more_b(&n, n) + c(&n, n); }\n"
    made = make_corpus(tmp_path / "corpus", plugin.toolchain, {"one": source})
    for compiles in (9, 10, 11):
        found = run(made, plugin, tmp_path / str(compiles), compiles)
        assert len(found.curve) > 1
        assert found.curve[-1].compiles <= compiles


def test_a_resumed_search_goes_the_same_way(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    whole = run(corpus, plugin, tmp_path / "whole", 14)
    run(corpus, plugin, tmp_path / "parts", 6)
    parts = run(corpus, plugin, tmp_path / "parts", 14)
    assert parts.text(PROBLEM) == whole.text(PROBLEM)
    assert parts.curve == whole.curve
    with pytest.raises(NestorError, match=r"another search; it differs in: seed\. Take"):
        run(corpus, plugin, tmp_path / "parts", 14, seed=1)
    path = tmp_path / "parts" / "search.json"
    before = path.read_text()
    kept = json.loads(before)
    del kept["identity"]["search"]["covered"]  # as a version without this setting wrote it
    path.write_text(json.dumps(kept))
    with pytest.raises(NestorError, match="how it searches"):
        run(corpus, plugin, tmp_path / "parts", 14)
    kept["identity"] = {**json.loads(before)["identity"], "state": 1}
    path.write_text(json.dumps(kept))
    with pytest.raises(NestorError, match="what it keeps"):
        run(corpus, plugin, tmp_path / "parts", 14)


class Counting(LayeredPool):
    """Counts the compiles of the pool below."""

    compiles = 0

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        self.compiles += len(requests)
        return super().run(requests, progress, stage)


def test_a_search_ends_and_builds_nothing_again(
    corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    (program,) = corpus.programs
    settings, folder = TuneSettings(("gc",), sweep=False), tmp_path / "tuned"
    with LocalPool(PROBLEM, corpus, plugin) as below:

        def again(compiles: float) -> tuple[Tuned, int]:
            pool, budget = Counting(below), SearchSettings(compiles=compiles)
            found = tune(pool, LINK, program, policy_named("default"), settings, budget, 0, folder)
            return found, pool.compiles

        first, compiled = again(9)
        counted = len(program.modules) * (first.curve[-1].compiles - 1)
        assert compiled == counted + len(program.modules), "stock, and what the search counts"
        same, compiled = again(9)
        assert compiled == 0, "what the result is made of is kept"
        assert same.text(PROBLEM) == first.text(PROBLEM)
        kept = next((folder / "units").iterdir())
        kept.write_bytes(kept.read_bytes()[:100])
        same, compiled = again(9)
        assert compiled == 1, "a damaged file is made again"
        assert same.text(PROBLEM) == first.text(PROBLEM)
        last, _ = again(1000)
        assert last.curve[-1].compiles < 200, "nothing was left to try"
        assert last.best.total <= first.best.total
        end, compiled = again(2000)
        assert (compiled, end.curve) == (0, last.curve)


def test_a_broken_state_is_refused(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    run(corpus, plugin, folder, 6)
    state = folder / "search.json"
    state.write_text(state.read_text()[:100])
    with pytest.raises(NestorError, match="no kept search"):
        run(corpus, plugin, folder, 6)


def test_a_further_start_that_cannot_be_built_is_none(
    corpus: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = UnitBuilder.build

    def build(self: UnitBuilder, *arguments: Any, **words: Any) -> ProgramBuild:
        if self.policy.name == "always":
            raise BuildError("a.cpp: timeout")
        return built(self, *arguments, **words)

    monkeypatch.setattr(UnitBuilder, "build", build)
    (program,) = corpus.programs
    budget = SearchSettings(compiles=4)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        settings = TuneSettings(("gc",), sweep=False, policies=("always", "never"))
        found = tune(pool, LINK, program, DEFAULT, settings, budget, 0, tmp_path / "a")
        assert [point.compiles for point in found.curve][:4] == [0, 1, 2, 3]
        assert found.policy.name in ("default", "never")
        settings = TuneSettings(("gc",), sweep=False)
        with pytest.raises(BuildError, match="timeout"):
            first = policy_named("always")
            tune(pool, LINK, program, first, settings, budget, 0, tmp_path / "b")


def test_only_what_an_override_touches_is_compiled_again(corpus: Corpus, plugin: Plugin) -> None:
    (program,) = corpus.programs
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        builder = LINK.incremental(pool, program, DEFAULT, ["gc"])
        try:
            stock = builder.build({})
            assert builder.rollouts == 3
            assert builder.build({Key("site", 1): True}).total == stock.total
            assert builder.rollouts == 3, "nobody asks about that site"
            move = _moves(program, builder)[0]
            builder.build({move: True})
            assert builder.rollouts == 4, "a local function's site is in one module"
        finally:
            builder.close()


def _moves(program: Program, builder: ProgramBuilder) -> list[Key]:
    sites = sites_of(builder.build({}).trajectories)
    found = [m for m in site_moves(sites) if m.answer]
    assert found, program.name
    assert {m.key.kind for m in callee_moves(sites)} == {"callee"}
    reach = SiteReach(builder.build({}).trajectories)
    for move in found:
        (site,) = move.questions
        assert isinstance(site, Site)
        assert {site.caller, site.callee} <= reach.of(move)
    return [move.key for move in found]


# Once leaf is in it, mid costs more than a call, and the stock heuristic answers otherwise there.
CHAIN = """
int sink;
int leaf(int *a, int n) { sink += n; a[n & 7] ^= sink * 5 + a[(n >> 2) & 7]; return a[n & 3]; }
int mid(int *a, int n) { return leaf(a, n); }
int main(int n, char **) { int v[8] = {n, 2, 3, 4}; return mid(v, n) + mid(v, n + sink); }
"""


def test_pinned_sites_do_not_answer_otherwise(tmp_path: Path, plugin: Plugin) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.cpp").write_text(CHAIN)
    make = "program: main.cpp\n\t$(CXX) -Oz -ffunction-sections -o $@ $<\n"
    chain = {"program": (tmp_path / "src", make)}
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {}, chain)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        builder = LINK.incremental(pool, corpus.programs[0], DEFAULT, ["gc"])
        try:
            stock = builder.build({})
            pins = pins_of(stock.trajectories)
            into_mid = next(s.key for s in sites_of(stock.trajectories) if not s.answer)
            move = {into_mid: True}
            free, held = (
                pins_of(builder.build(overrides).trajectories) for overrides in (move, pins | move)
            )
        finally:
            builder.close()
    turned = {key for key in pins.keys() - move.keys() if free.get(key, pins[key]) != pins[key]}
    assert len(turned) == 2, "both calls of mid"
    assert all(held[key] == pins[key] for key in turned)


def test_plain_clang_takes_the_overrides(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    found = run(corpus, plugin, tmp_path / "tuned", 18)
    path = tmp_path / "overrides"
    path.write_text(found.text(PROBLEM))
    source = tmp_path / "src" / "a.cpp"
    sizes = []
    for flags in ([], plugin_flags(plugin, "default", overrides=path)):
        out = tmp_path / "a.o"
        compiler = str(plugin.toolchain.clangxx)
        command = [compiler, "-Oz", "-ffunction-sections", "-c", str(source), "-o", str(out)]
        subprocess.run([*command, *flags], check=True)
        sizes.append(measure(out).loadable)
    assert sizes[1] < sizes[0]
