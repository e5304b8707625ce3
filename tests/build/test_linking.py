"""Linked scores: the shares of the modules add up to what the linker makes of the program."""

from pathlib import Path

import pytest

from nestor.build.linking import link, shares
from nestor.compiler.objects import measure
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT
from nestor.problem.rollout import Request
from nestor.rollout.cache import baseline_key, baselines
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM, policy_named

COMDAT = """
struct Noisy { ~Noisy(); };
template <typename T> T shared(T v) { Noisy guard; return v * 3 + 1; }
int %s(int v) { return shared(v) + shared(v + 1); }
static int unused_helper(int v) { return v; }
int unused_%s(int v) { return unused_helper(v) + shared(v); }
"""


@pytest.fixture
def comdat_corpus(tmp_path: Path, plugin: Plugin) -> Corpus:
    """One C++ program of three modules, two of which hold a copy of the same template."""
    work = tmp_path / "src"
    work.mkdir()
    for name in ("a", "b"):
        (work / f"{name}.cpp").write_text(COMDAT % (name, name))
    (work / "main.cpp").write_text(
        "struct Noisy { ~Noisy(); }; int calls; Noisy::~Noisy() { ++calls; }"
        "int a(int); int b(int); int main() { return (a(1) + b(2)) & 1; }"
    )
    make = (
        "program: a.o b.o main.o\n\t$(CXX) -o $@ $^\n"
        "%.o: %.cpp\n\t$(CXX) -O2 -ffunction-sections -c $<\n"
    )
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})


def test_comdat_copies_weigh_one_together(comdat_corpus: Corpus, plugin: Plugin) -> None:
    (program,) = comdat_corpus.programs
    with LocalPool(PROBLEM, comdat_corpus, plugin) as pool:
        objects = baselines(pool, comdat_corpus.modules, policy_named("never"))
    linked = link(plugin.toolchain, comdat_corpus, program, objects, want_kept=True)
    assert linked.measure is not None
    sizes = {name: measure(path) for name, path in objects.items()}
    weights = shares(program, linked, sizes)
    copies = {k: v for k, v in weights.functions.items() if "shared" in k[1]}
    assert len(copies) == 2
    assert all(value == 0.5 for value in copies.values())
    unused = [v for (_, name), v in weights.functions.items() if "unused" in name]
    assert unused in ([], [0.0, 0.0]), "what the linker dropped weighs nothing"
    total = sum(weights.score(name, size) for name, size in sizes.items())
    assert 0.5 < total / linked.measure.loadable < 1.05, "the shares add up to most of the program"


@pytest.mark.corpus
@pytest.mark.parametrize("project", ["jsoncpp", "tinyxml2", "lz4"])
def test_shares_add_up_to_the_program(tiny_corpus: Corpus, plugin: Plugin, project: str) -> None:
    """What the modules' shares say of a change is what the linker says of the program."""
    (program,) = tiny_corpus.programs_of_project(project)
    modules = tuple(tiny_corpus.module(name) for name in program.modules)
    shared, exact = [], []
    with LocalPool(PROBLEM, tiny_corpus, plugin) as pool:
        for policy in (None, policy_named("threshold:15")):
            objects = baselines(pool, modules, policy)
            linked = link(plugin.toolchain, tiny_corpus, program, objects, want_kept=True)
            assert linked.measure is not None
            sizes = {name: measure(path) for name, path in objects.items()}
            weights = shares(program, linked, sizes)
            shared.append(sum(weights.score(name, size) for name, size in sizes.items()))
            exact.append(linked.measure.loadable)
    assert shared[0] == pytest.approx(exact[0], rel=0.06)
    assert shared[1] - shared[0] == pytest.approx(exact[1] - exact[0], abs=0.005 * exact[0])


def test_baselines_are_cached_by_content(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    compiled: list[int] = []

    class Counting(LocalPool):
        def run(self, requests, *arguments):  # type: ignore[no-untyped-def]
            compiled.append(len(requests))
            return super().run(requests, *arguments)

    with Counting(PROBLEM, small_corpus, plugin) as pool:
        first = baselines(pool, small_corpus.modules, None)
        again = baselines(pool, small_corpus.modules, None)
        other = baselines(pool, small_corpus.modules, DEFAULT)
        keys = {baseline_key(pool, m, None) for m in small_corpus.modules}
    assert first == again
    assert compiled == [2, 2]
    assert set(first.values()).isdisjoint(other.values())
    assert len(keys) == 2
    for name, path in first.items():
        assert path.read_bytes() == other[name].read_bytes(), "the default is stock"


def test_objects_are_deterministic(small_corpus: Corpus, plugin: Plugin) -> None:
    module = small_corpus.modules[0]
    policy = policy_named("mlgo2020")
    requests = [Request(module, policy, seed=seed, keep=True) for seed in (None, None, 5, 5)]
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        done = pool.run(requests)
    assert all(rollout.ok for rollout in done)
    objects = [rollout.object for rollout in done]
    assert objects[0] == objects[1]
    assert objects[2] == objects[3]
