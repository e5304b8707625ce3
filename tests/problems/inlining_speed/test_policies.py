"""Policies for speed: what a profile says of calls, and what is learned from it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.api.learning import Trained, train_policy
from nestor.compiler.plugin import Plugin
from nestor.corpus.codegen.profiled import make_profiled_corpus
from nestor.corpus.model import Corpus, CorpusError, Workload
from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.profile import (
    Profile,
    ProfileSettings,
    Tried,
    counted_rollouts,
    rows_of,
)
from nestor.learn.benefit.model import BoostSettings
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import PolicyError
from nestor.problem.problem import ProblemError
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import trajectory
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.problems.inlining_speed.test_tune import SOURCE as HOT

PROBLEM = find_problem("inlining-speed")


def test_a_policy_of_another_problem_is_refused() -> None:
    sentence = "^The policy shipped is for inlining-size, not for inlining-speed: name that problem"
    with pytest.raises(PolicyError, match=sentence):
        PROBLEM.policy("shipped")
    with pytest.raises(PolicyError, match=r"There is no policy file 'shiped-speed'.*shipped-speed"):
        PROBLEM.policy("shiped-speed")


@pytest.fixture
def corpus(plugin: Plugin, tmp_path: Path) -> Corpus:
    made = make_corpus(tmp_path / "corpus", plugin.toolchain, {"hot": HOT}, level="-O2")
    (program,) = made.programs
    return replace(made, programs=(replace(program, workload=Workload(("20",), (("9000",),))),))


def logged(corpus: Corpus, plugin: Plugin) -> dict[str, Rollout]:
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        requests = [Request(m, DEFAULT, log=True, names=True) for m in corpus.modules]
        return {done.request.unit.name: done for done in pool.run(requests)}


def callees(log: Trajectory) -> list[str]:
    return [log.names[int(callee) % 2**64] for callee in log.decisions["callee"]]


def test_a_profile_says_what_calls_take(plugin: Plugin, corpus: Corpus, tmp_path: Path) -> None:
    profiled = make_profiled_corpus(corpus, tmp_path / "profiled", plugin.toolchain)
    assert [p.name for p in profiled.programs] == [p.name for p in corpus.programs]
    assert profiled.level == "-O2"
    plain, counted = logged(corpus, plugin), logged(profiled, plugin)
    (log,) = (done.trajectory for done in plain.values())
    (counts,) = (done.trajectory for done in counted.values())
    assert log is not None
    assert counts is not None
    found = PROBLEM.profiles().benefits(log, counts)
    names = np.array(callees(log))[found.rows]
    assert {"hot", "medium"} <= set(names)
    assert (found.gain[names == "hot"] > 1).all()
    assert (found.gain[names != "hot"] < 0.01).all()
    assert (found.cost > 0).all()
    assert (np.array(log.rows(["call_profile_share"])) == -1).all()

    features = PROBLEM.features.unit
    rows = rows_of(PROBLEM, features, corpus.programs, plain, counted)
    assert len(rows.x) == 2 * len(found.rows)
    few = ProfileSettings(boost=BoostSettings(rounds=60, least_rows=1, leaves=4), take=(0.5,))
    learner = Profile(few, PROBLEM, features, 0, lambda: rows, None)
    state, metrics = learner.update(learner.init(), learner.batch(learner.init()))
    assert metrics["take"] == 0.5
    policy = NamedPolicy.of(learner.policy(state))
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        (module,) = corpus.modules
        (done,) = pool.run([Request(module, policy, log=True, names=True)])
    assert done.trajectory is not None
    answers = dict(zip(callees(done.trajectory), done.trajectory.decisions["answer"], strict=True))
    stock = dict(zip(callees(log), log.decisions["answer"], strict=True))
    assert (stock["hot"], answers["hot"]) == (0, 1)


# Stock keeps hot() in through(), which it inlines into main(), and there it keeps the copy.
THROUGH = HOT.replace(
    "int main", "static long through(long v, long i) { return hot(v ^ 3, i) + 1; }\nint main"
).replace("sum = seldom(hot(sum, i), i)", "sum = seldom(through(sum, i), i)")


def test_counts_tell_of_all_questions_that_are_asked_without_a_profile(
    plugin: Plugin, tmp_path: Path
) -> None:
    made = make_corpus(tmp_path / "corpus", plugin.toolchain, {"hot": THROUGH}, level="-O2")
    (program,) = made.programs
    program = replace(program, workload=Workload(("20000",), (("6000",),)))
    made = replace(made, programs=(program,))
    profiled = make_profiled_corpus(made, tmp_path / "profiled", plugin.toolchain)
    plain = logged(made, plugin)
    with LocalPool(PROBLEM, profiled, plugin) as pool:
        held = counted_rollouts(pool, profiled.modules, plain, Tally())
    log, counts, by_default = (
        next(iter(side.values())).trajectory for side in (plain, held, logged(profiled, plugin))
    )
    assert log is not None
    assert counts is not None
    assert by_default is not None

    def answers(of: Trajectory) -> list[tuple[int, int]]:
        return sorted(of.decisions[["site", "answer"]].tolist())

    assert answers(counts) == answers(log) != answers(by_default)
    benefits = PROBLEM.profiles().benefits(log, counts)
    assert benefits.rows.tolist() == list(range(len(log)))
    copies = (log.decisions["copy_of"] != 0) & (np.array(callees(log)) == "hot")
    assert copies.any()
    assert (benefits.gain[copies] > 1).all()


def test_modules_that_ask_nothing_are_part_of_the_code(plugin: Plugin, tmp_path: Path) -> None:
    source = {"idle": "int main(void) { return 0; }"}
    made = make_corpus(tmp_path / "corpus", plugin.toolchain, source, level="-O2")
    plain = logged(made, plugin)
    with LocalPool(PROBLEM, made, plugin) as pool:
        assert counted_rollouts(pool, made.modules, plain, Tally()).keys() == plain.keys() != set()


def test_what_would_no_longer_be_inlined_is_taken_off() -> None:
    names = [
        "site", "caller", "callee", "inlining_default", "cost_estimate", "effect",
        "callee_disappears", "callee_arguments", "call_profile_share",
    ]  # fmt: skip
    billion, inner, outer, leaf = 10**9, 1, 2, 3

    def gain(cost: int) -> list[float]:
        rows = [
            (1, inner, leaf, 0, 100, 0, 0, 0, billion),
            (2, outer, inner, 1, cost, 1, 0, 0, billion // 4),
        ]
        log = trajectory(np.array(rows, [(name, "<i8") for name in names]))
        gains: list[float] = PROBLEM.profiles().benefits(log, log).gain.tolist()
        return gains

    assert gain(125) == [8.0, 2.0]
    assert gain(126) == [6.0, 2.0], "the call of inner() would not be inlined any more"
    assert gain(226) == [8.0, 2.0], "it was not inlined by its cost"


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ([], 0),
        ([(-0.05, 0.004, 0.02)], 1),
        ([(-0.05, 0.006, 0.02)], 0),  # one program loses too much
        ([(-0.05, 0.0, 0.021)], 0),  # too much code
        ([(-0.05, 0.006, 0.0), (-0.02, 0.0, 0.0)], 0),
    ],
)
def test_the_best_is_chosen_of_those_within_the_limits(
    others: list[tuple[float, float, float]], chosen: int
) -> None:
    policy = PROBLEM.policy("shipped-speed").policy
    assert policy is not None
    found = [(-0.03, 0.0, 0.01), *others]
    batch = [Tried(float(number), policy, *values) for number, values in enumerate(found)]
    learner = Profile(ProfileSettings(), PROBLEM, (), 0, lambda: pytest.fail("no rows"), None)
    _, metrics = learner.update(learner.init(), batch)
    assert metrics["take"] == chosen


def test_a_run_is_tied_to_the_counts_and_not_to_their_path(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    first = make_profiled_corpus(corpus, tmp_path / "profiled", plugin.toolchain)
    settings = {"boost": BoostSettings(rounds=20, least_rows=1, leaves=4), "take": (0.5,)}
    with LocalPool(PROBLEM, corpus, plugin) as pool:

        def train(counted: Path) -> Trained:
            own = settings | {"counted": counted}
            return train_policy(pool, tmp_path / "run", learner="profile", settings=own)

        done = train(first.root)
        moved = tmp_path / "elsewhere"
        first.root.rename(moved)
        again = train(moved)
    named = done.policy.metadata.provenance["settings"]
    assert isinstance(named, dict)
    assert named["counted"] == first.digest
    assert again.path.read_bytes() == done.path.read_bytes()


def test_learners_that_score_modules_alone_are_refused_before_they_compile(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    with (
        LocalPool(PROBLEM, corpus, plugin) as pool,
        pytest.raises(NestorError, match="scores whole programs: take --learner distil or bc or"),
    ):
        train_policy(pool, tmp_path / "run", learner="ppo")
    with LocalPool(PROBLEM, corpus, plugin) as pool, pytest.raises(ProblemError, match="profile"):
        PROBLEM.scorers(pool, corpus.programs, {})


def test_without_a_profile_run_nothing_is_made(
    plugin: Plugin, corpus: Corpus, tmp_path: Path
) -> None:
    (program,) = corpus.programs
    without = replace(corpus, programs=(replace(program, workload=None),))
    with pytest.raises(CorpusError, match="none has a profile run"):
        make_profiled_corpus(without, tmp_path / "profiled", plugin.toolchain)
    assert not list(tmp_path.glob("profiled/*.json"))
