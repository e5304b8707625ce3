"""CMA-ES where only whole programs have a score: real builds, real runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from nestor.api.learning import Trained, train_policy
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Workload
from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.cma_es import CmaEs, CmaSettings
from nestor.learn.blackbox.comparison import Comparison, by_programs, on_training_programs
from nestor.learn.budget import Budget
from nestor.learn.learners import check_setup
from nestor.learn.setup import Setup
from nestor.learn.start import StartSettings, start
from nestor.policy.spec import Policy
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.learn.worlds import acts_below, beginner, threshold_world
from tests.problems.inlining_speed.test_tune import SOURCE as HOT

PROBLEM = find_problem("inlining-speed")
IDLE = "int main(void) { return 0; }"
SETTINGS = {
    "population": 6,
    "modules": 2,
    "width": 2.0,
    "start": StartSettings(hidden=(), explore=0.2, outliers=0.0),
}


@pytest.fixture
def corpus(plugin: Plugin, tmp_path: Path) -> Corpus:
    """Two programs, of which one asks nothing."""
    sources = {"hot": HOT, "idle": IDLE}
    made = make_corpus(tmp_path / "corpus", plugin.toolchain, sources, level="-O2")
    run = Workload(("20",), (("900",),))
    return replace(made, programs=tuple(replace(p, workload=run) for p in made.programs))


def setup_of(pool: LocalPool, folder: Path, **options: Any) -> Setup:
    return Setup(pool, folder, 0, Tally(), **options)


def test_cma_es_learns_from_runs_and_goes_on_where_it_was(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    with LocalPool(PROBLEM, corpus, plugin) as pool:

        def train(folder: str, compiles: int) -> Trained:
            return train_policy(
                pool, tmp_path / folder, learner="cma", settings=SETTINGS, seed=1,
                budget=Budget(compiles=compiles),
            )  # fmt: skip

        whole = train("whole", 24)
        part = train("cut", 8)
        first = part.path.read_bytes()
        resumed = train("cut", 24)
    assert part.result.resumed_at == whole.result.resumed_at == 0
    assert resumed.result.resumed_at == 8
    assert whole.path.read_bytes() == resumed.path.read_bytes() != first
    ends = [(tmp_path / f / "checkpoint.safetensors").read_bytes() for f in ("whole", "cut")]
    assert ends[0] == ends[1]
    assert whole.result.last_metrics["best_change_pct"] < -1
    changes = whole.report["training_programs"]
    assert changes.keys() == {p.name for p in corpus.programs}
    assert changes["idle/idle"] == 0
    assert whole.tally.failures == 0


def always() -> Policy:
    found = PROBLEM.policy("always").policy
    assert found is not None
    return found


def test_code_beyond_the_limit_counts_as_the_score_does(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    def changes(limit: float) -> npt.NDArray[np.float64]:
        limited = replace(PROBLEM, report=replace(PROBLEM.report, limits=(("text", limit),)))
        with LocalPool(limited, corpus, plugin) as pool:
            (found,) = on_training_programs(setup_of(pool, tmp_path))([always()])
            return np.asarray(found)

    free, loose, tight = changes(100.0), changes(0.52), changes(0.5)
    assert -0.5 < free[0] < 0, "it is faster"
    assert tight[0] - free[0] == pytest.approx(0.5, abs=0.2), "code is hardly larger or smaller"
    assert loose[0] == pytest.approx(tight[0] - 0.02)
    assert free[1] == loose[1] == tight[1] == 0, "nothing is built of it again"


def test_candidates_of_a_step_are_compared_on_the_same_programs() -> None:
    class Table:
        programs = tuple(range(5))
        asked: list[list[int]] = []  # noqa: RUF012

        def __call__(self, policies: Sequence[Policy], places: Sequence[int]) -> Any:
            self.asked.append([int(each) for each in places])
            rows = [[0.1 * row + place for place in places] for row, _ in enumerate(policies)]
            return np.array(rows)

    table = Table()
    judge = by_programs(cast(Comparison, table), 3, 2)
    policies = [acts_below(1), acts_below(2)]
    found = [judge(policies, step) for step in (0, 1, 0)]
    first, second, again = table.asked
    assert len(set(first)) == len(set(second)) == 2
    assert not set(first) & set(second), "all are visited once before one is visited again"
    assert first == again
    mean = np.mean(first)
    assert found[0] == pytest.approx([mean, mean + 0.1])


def test_a_candidate_of_which_a_program_fails_counts_as_twice_stock(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        compare = on_training_programs(setup_of(pool, tmp_path))
        path = corpus.bitcode(compare.pool.defaults["hot/hot.o"].request.unit)
        path.write_bytes(path.read_bytes()[:100])
        questions = compare.questions(PROBLEM.features.few)
        as_stock = start(questions, StartSettings(hidden=()), 0)
        judge = by_programs(compare, 0, 2)
        found = judge([always(), as_stock], 0)
    assert np.isnan(found[0])
    assert found[1] == 0, "nothing is compiled for it"
    learner = CmaEs(CmaSettings(population=4), 0, beginner(threshold_world()), judge)
    state, metrics = learner.update(learner.init(), np.array([*found, 0.1, -0.1]))
    assert state.scores.tolist() == [[1.0, 0.0, 0.1, -0.1]]
    assert metrics["failed"] == 1


def test_what_needs_scores_of_units_is_refused(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        check_setup("cma", setup_of(pool, tmp_path))
        minutes = setup_of(pool, tmp_path, budget=Budget(cpu_minutes=1))
        with pytest.raises(NestorError, match=r"no price in CPU minutes: give --budget\.compiles"):
            check_setup("cma", minutes)
        estimated = setup_of(pool, tmp_path, estimate=tmp_path / "model")
        with pytest.raises(NestorError, match="cma needs whole compiles: leave out --estimate"):
            check_setup("cma", estimated)
