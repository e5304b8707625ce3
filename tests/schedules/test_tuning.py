"""Searches, the database and the policy; two of the tests evaluate real kernels."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.errors import NestorError
from nestor.policy import bundle
from nestor.policy.metadata import Metadata
from nestor.policy.trees import TreesPolicy
from nestor.schedules.compiling import compile as compile_payload
from nestor.schedules.kernel.evaluate import Evaluation, Task
from nestor.schedules.kernel.guess import guess
from nestor.schedules.kernel.measure import Settings
from nestor.schedules.kernel.verify import fresh_inputs
from nestor.schedules.language.library import packaged
from nestor.schedules.language.linking import decisions_of
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.loops import Loops, loops_of
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target, host
from nestor.schedules.tools import Tools, find_tools
from nestor.schedules.tune import policy as policies
from nestor.schedules.tune import space
from nestor.schedules.tune.database import Database, Key, Result, key_of
from nestor.schedules.tune.searches import Problem, SearchName, first_guess, make_search
from nestor.schedules.tune.tuning import TuneSettings, problem_of, tune

AVX2 = find_target("avx2")
LOOPS = Loops("matmul", 1, 96, 96, 64, 32, 0, 2)


@pytest.fixture(scope="module")
def tools() -> Tools:
    return find_tools()


@pytest.fixture(scope="module")
def task(tools: Tools) -> Task:
    payload = read_payload(texts.row_sums(6, 40), tools)
    settings = Settings(rounds=2, numpy=False)
    return Task(payload, packaged(), "rows", AVX2, tools, settings)


def problem() -> Problem:
    decisions = decisions_of(packaged(), "matmul")
    return Problem(decisions, LOOPS, AVX2, guess(decisions, LOOPS, AVX2))


def test_a_search_keeps_results_and_uses_them_again(task: Task, tmp_path: Path) -> None:
    database = Database(tmp_path / "results.sqlite")
    settings = TuneSettings(search="random", evaluations=3, seed=1)
    tuned = tune(task, settings, database)
    assert len(tuned.history) == 3
    assert tuned.best.least == min(e.least for e in tuned.history if e.least)
    assert tuned.reused == 0
    again = tune(task, settings, Database(tmp_path / "results.sqlite"))
    assert again.reused == 3
    assert again.best == tuned.best
    newer = replace(task, tools=replace(task.tools, version="99.0.0"))
    assert database.results(key_of(newer)) == []
    assert len(database.stale(key_of(newer))) == 3
    assert database.stale(key_of(task)) == []


def test_the_best_is_never_worse_than_what_an_earlier_search_found(
    task: Task, tmp_path: Path
) -> None:
    computed, fixed = problem_of(task)
    database = Database(tmp_path / "results.sqlite")
    other = next(d for d in computed.decisions if len(d.options) > 1)
    option = next(o for o in other.options if o != computed.guess[other.name])
    before = Evaluation({**computed.guess, other.name: option} | fixed, "ok", "", 1e-12, 1e-12)
    database.add(task, before)
    tuned = tune(task, TuneSettings("random", 1), database)
    assert tuned.history != (before,)
    assert tuned.best == before


def test_a_search_by_a_policy_tries_what_is_computed_second(task: Task, tmp_path: Path) -> None:
    computed, fixed = problem_of(task)
    wide = any_lanes_above(computed.guess["lanes"])
    database = Database(tmp_path / "a.sqlite")
    tuned = tune(task, TuneSettings("learned", 2), database, wide)
    assert tuned.first.choice["lanes"] > computed.guess["lanes"]
    assert tuned.history[1].choice == dict(computed.guess) | fixed


def test_results_belong_to_the_processor_that_ran_them(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Database(tmp_path / "results.sqlite")
    kept.add(task, Evaluation({"rows": 1}, "ok", "", 1.0, 1.0))
    assert kept.find(key_of(task), {"rows": 1}) is not None
    # The same words for clang on another machine.
    elsewhere = replace(host(), processor="AMD Zen 9")
    monkeypatch.setattr("nestor.schedules.tune.database.host", lambda: elsewhere)
    assert kept.find(key_of(task), {"rows": 1}) is None


def test_a_schedule_for_another_payload_fails_with_its_reason(task: Task, tmp_path: Path) -> None:
    bad = replace(task, schedule="matmul")
    with pytest.raises(NestorError, match="No choice gave a right kernel"):
        tune(bad, TuneSettings(search="random", evaluations=1), Database(tmp_path / "a.sqlite"))


@pytest.mark.parametrize("name", ["random", "evolution"])
def test_searches_propose_new_choices_from_the_options(name: SearchName) -> None:
    one = problem()
    search = make_search(name, one, seed=3)
    done = [Evaluation(one.guess, "ok", "", 1.0, 1.0)]
    for number in range(30):
        choice = search(done)
        assert all(choice[d.name] in d.options for d in one.decisions)
        assert choice not in [e.choice for e in done]
        done.append(Evaluation(choice, "ok", "", 1.0 / (number + 1), 1.0))


def test_evolution_finds_what_random_choices_do_not() -> None:
    one = problem()
    best = {"tile_m": 96, "tile_n": 64, "tile_k": 64, "reg_m": 6, "reg_n": 16}
    best |= {"packing": 1, "edge": 16, "inner": 0, "parallel": 0}
    options = {d.name: d.options for d in one.decisions}

    def seconds(choice: dict[str, int]) -> float:
        off = [abs(options[n].index(choice[n]) - options[n].index(best[n])) for n in best]
        return 1.0 + sum(off)

    def run(name: SearchName, seed: int) -> float:
        search = make_search(name, one, seed)
        start = {d.name: d.options[0] for d in one.decisions}
        done = [Evaluation(start, "ok", "", seconds(start), None)]
        for _ in range(60):
            choice = search(done)
            done.append(Evaluation(choice, "ok", "", seconds(choice), None))
        return min(e.least or 0.0 for e in done)

    seeds = range(5)
    assert np.mean([run("evolution", s) for s in seeds]) < np.mean(
        [run("random", s) for s in seeds]
    )


def nothing_learned() -> TreesPolicy:
    """Return a policy without preferences: one tree of one leaf."""
    metadata = Metadata("trees", ("bits",), "decision", "none", problem="schedule", rule="pick")
    index, number = np.zeros(1, np.int32), np.zeros(1, np.float64)
    return TreesPolicy(
        metadata, root=index, feature=index - 1, threshold=number, left=index, right=index,
        value=number,
    )  # fmt: skip


def any_lanes_above(least: int) -> TreesPolicy:
    """Return a policy that prefers more lanes than ``least``: one tree of one split."""
    policy = nothing_learned()
    return replace(
        policy, metadata=replace(policy.metadata, features=("lanes",)),
        feature=np.array([0, -1, -1], np.int32), threshold=np.array([least, 0.0, 0.0]),
        left=np.array([1, 0, 0], np.int32), right=np.array([2, 0, 0], np.int32),
        value=np.array([0.0, 0.0, 1.0]),
    )  # fmt: skip


def synthetic_results(seed: int) -> list[Result]:
    """Return results of invented payloads on which few accumulators are slow."""
    random = np.random.default_rng(seed)
    decisions = decisions_of(packaged(), "matmul")
    found = []
    for number in range(6):
        loops = replace(LOOPS, m=int(random.integers(40, 400)), n=int(random.integers(40, 400)))
        key = Key(f"payload {number}", "matmul x", "cpu", "22.1.8")
        for _ in range(40):
            choice = space.drawn(decisions, random)
            features = space.row(choice, loops, AVX2)
            seconds = 1e-3 * loops.m * (2.0 if features["accumulators"] > 0.9 else 1.0)
            seconds *= 1.0 + features["loads"]
            evaluation = Evaluation(choice, "ok", "", seconds, seconds)
            found.append(Result(key, "matmul", evaluation, features))
    return found


def test_a_policy_learns_from_other_payloads(tmp_path: Path) -> None:
    policy = policies.train(synthetic_results(0), seed=0)
    bundle.save(policy, tmp_path / "policy.safetensors")
    policy = bundle.load(tmp_path / "policy.safetensors")  # type: ignore[assignment]
    one = problem()
    picked = space.row(first_guess(one, policy, seed=0), LOOPS, AVX2)
    random = np.random.default_rng(1)
    others = [space.row(space.drawn(one.decisions, random), LOOPS, AVX2) for _ in range(100)]
    assert picked["accumulators"] <= 0.9
    fitting = [o["loads"] for o in others if o["accumulators"] <= 0.9]
    assert picked["loads"] <= np.quantile(fitting, 0.1)
    assert policy.metadata.rule == "pick"
    assert policy.metadata.provenance["payloads"] == 6


def test_a_policy_for_something_else_is_refused() -> None:
    policy = replace(
        nothing_learned(),
        metadata=replace(nothing_learned().metadata, problem="other"),
    )
    with pytest.raises(NestorError, match="decides 'other'"):
        policies.scores(policy, [problem().guess], LOOPS, AVX2)
    with pytest.raises(NestorError, match="0 results to learn from"):
        policies.train([], seed=0)


def test_results_of_an_older_nestor_do_not_hide_newer_ones() -> None:
    new = synthetic_results(0)
    old = [replace(r, features={n: v for n, v in r.features.items() if n != "panels"}) for r in new]
    assert "panels" in policies.train([*old, *new], seed=0).features
    assert policies.train(old, seed=0).metadata.provenance["results"] == len(new)


@pytest.mark.parametrize("columns", [992, 1000, 1024])
def test_the_guess_gives_up_vectors_only_for_much_padding(columns: int) -> None:
    decisions = decisions_of(packaged(), "matmul")
    choice = guess(decisions, replace(LOOPS, m=512, n=columns, k=256), AVX2)
    assert choice["reg_n"] == 16


def test_the_guess_fits_registers_and_caches(tools: Tools) -> None:
    decisions = decisions_of(packaged(), "matmul")
    for text in (texts.matmul(512, 512, 512), texts.matmul(7, 1000, 33), texts.matmul(2, 2, 2)):
        loops = loops_of(read_payload(text, tools))
        for name in ("avx512", "avx2", "sse2", "neon"):
            target = find_target(name)
            choice = guess(decisions, loops, target)
            accumulators = choice["reg_m"] * choice["reg_n"] * loops.bits / target.vector_bits
            assert all(choice[d.name] in d.options for d in decisions)
            assert accumulators <= target.registers


def test_tpe_proposes_new_choices_and_learns_where_they_are_fast() -> None:
    one = problem()
    search = make_search("tpe", one, seed=0)
    done = [Evaluation(one.guess, "ok", "", 1.0, 1.0)]
    for number in range(40):
        choice = search(done)
        assert choice not in [e.choice for e in done]
        failed = number % 5 == 4
        seconds = None if failed else (1.0 if choice["edge"] == 32 else 3.0)
        done.append(Evaluation(choice, "crashed" if failed else "ok", "", seconds, seconds))
    late = [e.choice["edge"] == 32 for e in done[21:]]
    early = [e.choice["edge"] == 32 for e in done[1:11]]
    assert np.mean(late) > np.mean(early)


def test_tpe_without_optuna_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(NestorError, match="pip install"):
        make_search("tpe", problem(), seed=0)


def test_a_database_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    path.write_text("no database, " * 200)
    with pytest.raises(NestorError, match="cannot be used as a database"):
        Database(path)


def test_tune_and_replay_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload, out = tmp_path / "sums.mlir", tmp_path / "schedule.mlir"
    payload.write_text(texts.row_sums(5, 33))
    database = str(tmp_path / "results.sqlite")
    words = ["schedule", "tune", str(payload), "--out", str(out), "--database", database]
    assert main([*words, "--evaluations", "2", "--rounds", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["history"]) == 2
    assert result["best"]["least"] <= result["first"]["least"]
    text = out.read_text()
    assert f"rows={result['best']['choice']['rows']}" in text
    assert "transform.tune" not in text
    words = ["schedule", "replay", str(payload), str(out), "--rounds", "0", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["correct"]
    assert main(["schedule", "train", "--database", database, "--out", str(out)]) == 1
    assert "2 results to learn from" in capsys.readouterr().err
    kernel = compile_payload(payload, out)
    (x,) = fresh_inputs(kernel.arguments, 0)
    np.testing.assert_allclose(kernel(x), x.sum(1), rtol=1e-4, atol=1e-4)


def test_a_schedule_that_stops_half_way_is_refused(tmp_path: Path) -> None:
    payload, resolved = tmp_path / "sums.mlir", tmp_path / "resolved.mlir"
    payload.write_text(texts.row_sums(4, 8))
    words = ["schedule", "apply", str(payload), "--schedule", "plain"]
    assert main([*words, "--resolved", str(resolved), "--out", str(tmp_path / "out")]) == 0
    head, _, _ = resolved.read_text().partition("transform.include @plain")
    resolved.write_text(head + "transform.yield\n  }\n}\n")
    with pytest.raises(NestorError, match="does not end in the LLVM dialect"):
        compile_payload(payload, resolved)


def test_a_kernel_under_an_operator_of_pytorch() -> None:
    path = Path(__file__).parents[2] / "examples" / "tuned_linear.py"
    spec = importlib.util.spec_from_file_location("tuned_linear", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main([]) < 1e-3
