"""What is known of a move of inlining for speed before it is built."""

from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Workload
from nestor.problem.registry import find_problem
from nestor.problems.inlining_size.search.sites import Site
from nestor.problems.inlining_speed.executed import ARGUMENT, CALL
from nestor.problems.inlining_speed.expected import EXPECTED, FEATURES, UNKNOWN
from nestor.tune.moves import Evidence, moves_of
from nestor.tune.state import Tried
from nestor.tune.steps.pairs import pairs
from tests.conftest import make_corpus
from tests.problems.inlining_speed.test_tune import SOURCE, builder_of

MOVES = moves_of(find_problem("inlining-speed"))


def test_what_is_known_of_a_move(plugin: Plugin, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"hot": SOURCE}, level="-O2")
    with builder_of(corpus, plugin, Workload(("20000",), (("6000",),))) as builder:
        built = builder.build({})
        plain = builder.build(MOVES.plain(built))
    calls, written = built.calls["profile"], MOVES.written(plain)
    evidence = Evidence(built.functions["profile"], calls, written)
    total = sum(evidence.functions.values())
    reach = MOVES.reach(built.trajectories)
    candidates = MOVES.candidates(built.trajectories, reach, 30.0, 0, evidence).every
    names = {
        number: name for log in built.trajectories.values() for number, name in log.names.items()
    }
    (first, *_) = candidates
    tried = {first.move.identity: Tried(first.context, 1, -0.01 * total)}
    x = MOVES.features(built.trajectories, candidates, reach, evidence, tried)
    found = {name: x[:, column] for column, name in enumerate(FEATURES)}

    sites = [site for c in candidates for site in c.move.questions if isinstance(site, Site)]
    assert found["to_inline"].tolist() == [not site.answer for site in sites]
    kept = [row for row, site in enumerate(sites) if names[site.callee] == "hot"]
    assert len(kept) == 2
    for row in kept:
        assert found["sites_between"][row] == 2
        assert found["calls"][row] == pytest.approx(6000 * (CALL + 2 * ARGUMENT) / total)
        assert found["calls_per_entry"][row] == 6000
        assert found["share_of_callee"][row] == 0.5
        assert found["executed_per_entry"][row] > 100
        assert found["written_per_entry"][row] == 12_000
    seldom = [row for row, site in enumerate(sites) if names[site.callee] == "medium"]
    assert len(seldom) == 12
    for row in seldom:
        assert found["calls"][row] < 0, "calls that were inlined are not counted"
        assert found["written_per_entry"][row] == pytest.approx(12 * 2 / 6000)
    assert found["tried"].tolist() == [1.0, *[0.0] * (len(sites) - 1)]
    assert found["found"][0] == pytest.approx(-0.01)
    untold = MOVES.features(built.trajectories, candidates, reach, Evidence(), {})
    assert set(untold[:, FEATURES.index("written_per_entry")]) == {UNKNOWN}
    assert len(MOVES.features(built.trajectories, [], reach, evidence, {})) == 0

    both = pairs(candidates, {c.move.identity: Tried(c.context, 1, 5.0) for c in candidates}, 30.0)
    x = MOVES.features(built.trajectories, both, reach, evidence, {})
    assert set(x[:, FEATURES.index("sites")]) == {2.0}
    assert x[:, FEATURES.index("found")] == pytest.approx(10.0 / total)


def test_the_packaged_trees_are_of_these_features() -> None:
    assert EXPECTED.packaged.features == EXPECTED.features == FEATURES
