"""Inlining at -Os: its packaged policy, searches from it, and the environment."""

import json
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.spec import PolicyError
from nestor.problem.registry import find_policy, find_problem, problem_names
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.search.sites import sites_of
from nestor.rollout.local_pool import LocalPool
from nestor.tune.moves import moves_of
from tests.command import nestor
from tests.conftest import SOURCE, make_corpus
from tests.plugin.support import CXX_SOURCE

PROBLEM = find_problem("inlining-size-os")


@pytest.fixture(scope="module")
def corpus(plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    sources = {"one": SOURCE, "two.cpp": f"{CXX_SOURCE}\nint main() {{ return 0; }}\n"}
    folder = tmp_path_factory.mktemp("os") / "corpus"
    return make_corpus(folder, plugin.toolchain, sources, level="-Os")


def test_the_packaged_policy_is_found_by_its_name() -> None:
    problem, named = find_policy("shipped-os", problem_names())
    assert problem == PROBLEM.name
    assert PROBLEM.reads_summary(named.policy)
    with pytest.raises(PolicyError, match="is for inlining-size-os, not for inlining-size: name"):
        find_problem("inlining-size").policy("shipped-os")


def test_distances_are_those_from_the_default_of_this_level(corpus: Corpus, plugin: Plugin) -> None:
    """A search tries calls first that the default has just inlined, or just left alone."""
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        requests = [Request(m, PROBLEM.policy("default"), log=True) for m in corpus.modules]
        logs = {done.request.unit.name: done.trajectory for done in pool.run(requests)}
    trajectories = {name: log for name, log in logs.items() if log is not None}
    costs = {site.key: site.cost for site in sites_of(trajectories)}
    for problem, threshold in (("inlining-size", 5), (PROBLEM.name, 50)):
        moves = moves_of(find_problem(problem))
        found = moves.candidates(trajectories, moves.reach(trajectories), 1.0)
        single = [each for turn in found.turns for each in turn if len(each.move.questions) == 1]
        assert single
        for each in single:
            (question,) = each.move.questions
            assert each.distance in (-1.0, abs(costs[question.key] - threshold) / 2)


def test_a_search_starts_from_the_packaged_policy(corpus: Corpus, tmp_path: Path) -> None:
    words = ["tune", "two", "--corpus", str(corpus.root), "--compiles", "5", "--json"]
    done = nestor(*words, "--out", str(tmp_path / "a"), "--problem", PROBLEM.name)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["policy"] in ("shipped-os", "default")
    assert result["sizes"]["gc"]["tuned"]["linked"] <= result["sizes"]["gc"]["stock"]["linked"]
    other = nestor(*words, "--out", str(tmp_path / "b"))
    assert other.returncode == 0, other.stderr
    assert f", or take --problem {PROBLEM.name}" in other.stderr.replace("\n", " ")


def test_the_environment_compiles_at_this_level() -> None:
    stock = set()
    for name in ("inlining-size", PROBLEM.name):
        environment = find_problem(name).environment()
        try:
            _, told = environment.reset(seed=1)
            ended = False
            while not ended:
                _, _, ended, _, told = environment.step(told.get("default", 0))
        finally:
            environment.close()
        assert told["digest"] == told["stock_digest"]
        stock.add(told["digest"])
    assert len(stock) == 2
