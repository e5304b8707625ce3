"""What a move changes further down, or in a library, is put down to it."""

from pathlib import Path

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Workload
from nestor.problem.registry import find_problem
from nestor.problems.inlining_size.search.sites import Site, sites_of
from nestor.problems.inlining_speed.run_build import structor_names
from nestor.tune.moves import Move, moves_of
from nestor.tune.steps.credit import assign, changes
from tests.conftest import make_corpus
from tests.problems.inlining_speed.test_tune import builder_of

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#define STEP(n) v ^= (v >> n) + n; v += v << (n & 7);
static long leaf(long v) {
  STEP(3) STEP(5) STEP(7) STEP(9) STEP(11) STEP(13) STEP(15) STEP(17) STEP(19) STEP(21) return v;
}
static long other(long v) { for (int i = 0; i < 4; ++i) { STEP(5) STEP(7) STEP(9) } return v; }
static long middle(long v) { return leaf(v + 1) * 3; }
int main(int argc, char **argv) {
  long sum = 0;
  for (long i = 0; i < atol(argv[1]); ++i) sum += middle(i) + other(i);
  printf("%ld\\n", sum + leaf(argc) + middle(argc) + other(argc));
  return 0;
}
"""


def test_what_a_call_brings_with_it_is_put_down_to_it(plugin: Plugin, tmp_path: Path) -> None:
    moves = moves_of(find_problem("inlining-speed"))
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"app": SOURCE}, level="-O2")
    with builder_of(corpus, plugin, Workload(("20000",), (("9000",),))) as builder:
        plain = builder.build(moves.plain(builder.build({})))
        (log,) = plain.trajectories.values()
        ids = {symbol: key for key, symbol in log.names.items()}
        sites = {(site.caller, site.callee): site for site in sites_of(plain.trajectories)}
        into_middle = sites[ids["middle"], ids["leaf"]]
        # All of middle() and the copies of its call are inlined; alone it would call leaf().
        both = {site.key: True for site in sites_of(plain.trajectories)}
        built = builder.build({**both, into_middle.key: False})
        copies = [site for site in sites_of(built.trajectories) if site.copy]
        inlined = builder.build({**built.overrides, **{site.key: True for site in copies}})
        calls = [
            site
            for site in sites_of(inlined.trajectories)
            if (site.caller, site.callee) == (ids["main"], ids["middle"])
        ]
        kept = {site.key: False for site in calls}
        without = builder.build({**inlined.overrides, **kept})
    changed = changes(inlined.functions["profile"], without.functions["profile"])
    assert changed[ids["leaf"]] > 100_000
    move = Move.one(calls[0].key, False, (calls[0],))
    reach = moves.reach(inlined.trajectories, without.trajectories)
    assert isinstance(calls[0], Site)
    assert reach.indirect(move, frozenset((ids["leaf"], ids["other"]))) == {ids["leaf"]: 1}
    (share,) = assign([reach.of(move)], changed, lambda _, f: reach.indirect(move, f)).shares
    assert share.change == sum(changed.values())
    assert share.change > 0 > assign([reach.of(move)], changed).shares[0].change


STRINGS = """
#include <cstdio>
#include <cstdlib>
#include <string>
int main(int argc, char **argv) {
  std::size_t sum = 0;
  for (long i = 0; i < std::atol(argv[1]); ++i) {
    std::string text(argv[1]);
    text.push_back('x');
    sum += text.size() + text[i % 3];
  }
  std::printf("%zu\\n", sum);
}
"""


def test_a_call_that_goes_to_a_library_is_counted_there(plugin: Plugin, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"text.cpp": STRINGS}, level="-O2")
    with builder_of(corpus, plugin, Workload(("20000",), (("9000",),))) as builder:
        inlined = builder.build({})
        (log,) = inlined.trajectories.values()
        destructor = [
            site
            for site in sites_of(inlined.trajectories)
            if log.names[site.callee].endswith("basic_stringIcSt11char_traitsIcESaIcEED2Ev")
        ]
        assert all(site.answer for site in destructor)
        kept = builder.build({site.key: False for site in destructor})
    callee, caller = destructor[0].callee, destructor[0].caller
    assert inlined.functions["profile"].get(callee, 0) == 0
    assert kept.functions["profile"][callee] > 9000 * 4
    assert kept.calls["profile"].edges[caller, callee] == 9000
    changed = changes(inlined.functions["profile"], kept.functions["profile"])
    assert sum(changed.values()) > 0, "a call costs more than none"


def test_constructors_and_destructors_have_two_names() -> None:
    assert structor_names("_ZN3SumC2El") == ("_ZN3SumC2El", "_ZN3SumC1El")
    assert structor_names("_ZN1AIN1BD1EED2Ev") == ("_ZN1AIN1BD1EED2Ev", "_ZN1AIN1BD1EED1Ev")
    assert structor_names("malloc") == ("malloc",)
    assert structor_names("FOOD1E") == ("FOOD1E",)
