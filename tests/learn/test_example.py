"""The example of docs/internals/add-your-own.md is a problem like any other, and short."""

from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.learn.accounting import Tally
from nestor.learn.algorithms import ppo, reinforce
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings
from nestor.learn.training import Run, train
from nestor.policy import bundle
from nestor.problem.check import check_problem
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.conftest import SOURCE, make_corpus

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "hoisting"
PROBLEM = find_problem(str(EXAMPLE))

# What both sides of a branch compute, which GVNHoist moves before it.
BRANCHES = """
struct s { int a, b, c, d; };
int walk(struct s *p, int c) {
  if (c & 1) {
    if (c & 2) { p->a += p->b * p->c; p->d = c; } else { p->a -= p->b * p->c; p->d = 3; }
  } else {
    if (c & 4) { p->a ^= p->b * p->c; p->d = 5; } else { p->a |= p->b * p->c; p->d = c + 7; }
  }
  return p->a;
}
int main(int argc, char **argv) {
  (void)argv;
  struct s v = {argc, argc, argc, argc};
  return walk(&v, argc);
}
"""


@pytest.fixture
def corpus(toolchain: Toolchain, tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", toolchain, {"branches": BRANCHES, "plain": SOURCE})


def test_example_is_short() -> None:
    assert sum(len(file.read_text().splitlines()) for file in EXAMPLE.rglob("*.py")) <= 150


def test_example_is_a_sound_problem(corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, corpus, plugin, PoolSettings(jobs=1)) as pool:
        check_problem(PROBLEM, pool.place, corpus.modules)


@pytest.mark.parametrize("learner", ["ppo", "reinforce"])
def test_example_trains_a_policy(
    learner: str, corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    begin = StartSettings(answers="deviation", hidden=(), explore=0.3)
    with LocalPool(PROBLEM, corpus, plugin, PoolSettings(jobs=1)) as pool:

        def ready(folder: Path) -> Ready:
            setup = Setup(pool, folder, 0, Tally())
            if learner == "ppo":
                return ppo.set_up(ppo.PpoSettings(steps=2, modules=2, start=begin), setup)
            return reinforce.set_up(
                reinforce.ReinforceSettings(steps=2, modules=2, start=begin), setup
            )

        runs = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            runs.append(train(ready(folder).learner, Run(folder, {"steps": 2})).policy)
        one, two = (bundle.to_bytes(policy) for policy in runs)
        assert one == two
        assert set(runs[0].features) <= set(PROBLEM.features.unit)
        requests = [Request(unit, log=False) for unit in corpus.modules]
        sizes = [PROBLEM.columns(done.outcome)["object"] for done in pool.run(requests)]
        assert np.isfinite(sizes).all()
