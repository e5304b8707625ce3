"""Groups: by language and style, failures kept, small programs left out of the means."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.cli.console import json_text
from nestor.cli.policies.evaluate import show
from nestor.corpus.model import Corpus, Program, Project
from nestor.evaluate.groups import groups, style_group
from nestor.evaluate.result import Evaluation, Outcome, ProgramResult
from nestor.problem.score import Report

CORPUS = Corpus(
    Path("nowhere"),
    projects=(
        Project("trained", split="train", style="modern: storage engine"),
        Project("seen", split="test", style="modern: build tool, STL"),
        Project("unseen", split="test", style="old: storage engine"),
        Project("validated", split="validation", style="old: storage engine"),
        Project("captured", split="test"),
    ),
)


@pytest.mark.parametrize(
    ("project", "language", "group"),
    [
        ("unseen", "c", "C"),
        ("seen", "c++", "C++, modern"),
        ("unseen", "c++", "C++, style unseen"),
        ("captured", "c++", "C++, style unknown"),
    ],
)
def test_style_group(project: str, language: str, group: str) -> None:
    assert style_group(CORPUS, Program(f"{project}/p", project, language, ())) == group


REPORT = Report(score="linked", columns=("linked", "text"))


def result(name: str, group: str, stock: int | None, policy: int | None) -> ProgramResult:
    before, after = (
        None if n is None else Outcome({"linked": n, "text": n // 2}) for n in (stock, policy)
    )
    return ProgramResult(name, name, "c++", "", group, before, after, REPORT)


def evaluation(*programs: ProgramResult) -> Evaluation:
    return Evaluation(
        "p", "gc", False, programs, (), None, 0, {}, None, {}, "a problem", "a build", REPORT
    )


def test_means_over_large_programs_by_group() -> None:
    (everything, new, old) = groups(
        [
            evaluation(
                result("a", "old", 1000, 500),
                result("b", "old", 1000, 2000),
                result("small", "old", 999, 4000),
                result("c", "new", 2000, 1000),
            )
        ],
        least=1000,
    )
    assert [g.name for g in (everything, new, old)] == ["all", "new", "old"]
    assert (everything.programs, new.programs, old.programs) == (3, 1, 2)
    assert old.geomean_pct["linked"] == pytest.approx(0)
    assert new.geomean_pct == pytest.approx({"linked": -50, "text": -50})
    assert everything.geomean_pct["linked"] == pytest.approx(100 * (0.5 ** (1 / 3) - 1))
    assert everything.to_json()["worst"] == {"name": "b", "linked_change_pct": 100}


def test_growth_from_nothing_is_a_dash_and_null(capsys: pytest.CaptureFixture[str]) -> None:
    grown = evaluation(result("a", "old", 0, 8), result("b", "old", 0, 0))
    (everything, _) = groups([grown], least=0)
    show(grown)
    assert "inf" not in capsys.readouterr().out
    found = json.loads(json_text([grown.to_json(), everything.to_json()]))
    assert [p["linked_change_pct"] for p in found[0]["programs"]] == [None, 0.0]
    assert found[0]["total"]["linked_change_pct"] is found[0]["total"]["linked_geomean_pct"] is None
    assert found[0]["total"]["ci95"] == [None, None]
    assert found[1]["worst"] == {"name": "a", "linked_change_pct": None}


def test_one_project_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    one = evaluation(result("a", "old", 100, 90))
    assert one.total()["ci95"] is None
    show(one)
    said = capsys.readouterr().out
    assert "-10.00 % (95 % interval by project –), geometric mean" in said
    twice = replace(one, programs=(*one.programs, replace(one.programs[0], name="b")))
    assert twice.total()["ci95"] is None
    assert evaluation(result("a", "old", 100, 90), result("b", "old", 9, 8)).total()["ci95"]


def test_failures_are_named_whatever_the_size() -> None:
    failed = evaluation(
        result("a", "old", 1000, 900),
        result("no stock", "old", None, 10),
        result("no policy", "new", 1000, None),
        result("small", "tiny", 10, None),
    )
    everything, new, old = groups([failed], least=1000)
    assert everything.failed == ("no stock", "no policy")
    assert (new.programs, new.geomean_pct["linked"], new.failed) == (0, None, ("no policy",))
    assert (old.programs, old.failed) == (1, ("no stock",))
