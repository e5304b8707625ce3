"""The page of a program that is judged by a run: what functions execute, what decisions cost."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.build.build import BuildError, Job, builds_of
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Workload
from nestor.problem.registry import find_problem
from nestor.problem.trajectory import Trajectory
from nestor.report.sides import Sides, compile_sides
from nestor.report.tables import page_data
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.problems.inlining_speed.test_tune import SOURCE

PROBLEM = find_problem("inlining-speed")
RUN = "profile"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Corpus:
    root = tmp_path_factory.mktemp("runs") / "corpus"
    found = make_corpus(root, plugin.toolchain, {"hot": SOURCE}, level="-O2")
    runs = Workload(("20000",), (("6000",),))
    programs = tuple(replace(program, workload=runs) for program in found.programs)
    return replace(found, programs=programs)


def compiled(corpus: Corpus, plugin: Plugin, *, overrides: str | None = None) -> Sides:
    policies = [PROBLEM.policy("never" if overrides is None else "default")]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        return compile_sides(pool, corpus.programs[0], policies, overrides=overrides, measure=3)


def test_functions_stand_with_what_they_execute(corpus: Corpus, plugin: Plugin) -> None:
    sides = compiled(corpus, plugin)
    (stock,), (never,) = (list(side.modules.values()) for side in sides.all)
    assert stock.parts["hot"] > 12_000 * 19 * 3
    assert "medium" not in stock.parts, "stock inlines it everywhere"
    assert never.parts["medium"] > 0
    for side in sides.all:
        (module,) = side.modules.values()
        # The rest of the run is the start of the process and libraries.
        assert 0.5 * side.columns["J"] < module.total <= side.columns["J"]
        assert module.total == sum(module.parts.values())
    data, _ = page_data(PROBLEM, sides)
    assert (data["level"], data["unit"], data["score"]) == ("-O2", "operations", "J")


def test_a_decision_is_measured_by_a_build_and_a_run_without_it(
    corpus: Corpus, plugin: Plugin
) -> None:
    sides = compiled(corpus, plugin)
    (side,) = sides.policies
    (module,) = side.modules.values()
    assert len(module.measured) == 3
    form = PROBLEM.overrides()
    deviations = form.deviations(plugin.toolchain, module.trajectory)
    left = [n for n, (a, d) in enumerate(zip(*_answers(module.trajectory), strict=True)) if a != d]
    row, change = next(iter(module.measured.items()))
    text = form.to_text(deviations[left.index(row)].revert)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        job = Job(corpus.programs[0], RUN, side.policy, overrides=text)
        (built,) = builds_of(PROBLEM)["run"].run(pool, [job])
    assert built.columns is not None
    assert change == side.columns["J"] - built.columns["J"]


def test_overrides_are_decisions_that_left_the_default(corpus: Corpus, plugin: Plugin) -> None:
    (never,) = compiled(corpus, plugin).policies
    (module,) = never.modules.values()
    form = PROBLEM.overrides()
    first = form.deviations(plugin.toolchain, module.trajectory)[0]
    text = form.to_text(first.replay)
    sides = compiled(corpus, plugin, overrides=text)
    data, _ = page_data(PROBLEM, sides)
    assert [side["name"] for side in data["sides"]] == ["default", "default + overrides"]
    assert data["overrides"]["base"] == [line.strip() for line in text.splitlines()[1:]]
    (side,) = sides.policies
    (module,) = side.modules.values()
    # Without the only override the program is stock's.
    assert list(module.measured.values()) == [side.columns["J"] - sides.default.columns["J"]]
    answers, defaults = _answers(module.trajectory)
    assert sum(a != d for a, d in zip(answers, defaults, strict=True)) >= 1


def test_a_program_without_runs_is_refused(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    (program,) = corpus.programs
    bare = replace(corpus, programs=(replace(program, workload=None),))
    with pytest.raises(BuildError, match="it has no profile run"):
        compiled(bare, plugin)


def _answers(log: Trajectory) -> tuple[list[float], list[float]]:
    answer, default = log.answer, log.default
    return answer.tolist(), default.tolist()
