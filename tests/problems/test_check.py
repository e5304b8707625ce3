"""The checker of decision problems passes what is sound and names what is not."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from nestor.build.build import Build
from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus, Module, Program
from nestor.policy.rule import PICK, THRESHOLD, VALUE, Rule
from nestor.problem.check import check_problem
from nestor.problem.problem import FeatureSets, Pool, Problem, ProblemError
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.score import Credit, Report, Scorer, Scorers
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.rollout.store import FileStore

Fault = Literal[
    "none", "noisy", "deaf", "stubborn", "infinite", "beyond", "short", "mute", "equal", "nan",
    "credit", "unkept", "scattered",
]  # fmt: skip

QUESTIONS = {"one": [2.0, 3.0, 1.0], "two": [5.0, 4.0]}
"""The weights of each question's candidates; the default chooses the last."""


NOISE = itertools.count(1)


@dataclass(frozen=True)
class Weights(Problem):
    """A problem without a compiler: choose candidates, and pay the weights of those chosen.

    Under the rules of one row a question, the row's weight is paid if the answer is positive.
    """

    fault: Fault = "none"

    def compile(self, request: Request, place: Workplace) -> Rollout:
        weights = [QUESTIONS[key] for key in sorted(QUESTIONS)]
        if self.rule != PICK:
            weights = [[value] for value in weights[0]]
        if self.fault == "mute":
            weights = []
        default = [len(own) - 1 if self.rule == PICK else 0 for own in weights]
        answers = list(default)
        log = self._log(weights, default, answers)
        policy = None if request.policy is None else request.policy.policy
        if policy is not None and self.fault != "deaf":
            actions = policy.actions(log.rows(policy.features), log.questions)
            if policy.metadata.answers == "deviation":
                actions = policy.answers_of(actions > 0, np.array(default) > 0).astype(int)
            answers = actions.tolist()
        if self.fault == "stubborn":
            answers = [0 for _ in default] if self.rule == PICK else [1 for _ in default]
        log = self._log(weights, default, answers)
        if self.rule == PICK:
            score = sum(own[answer] for own, answer in zip(weights, answers, strict=True))
        else:
            score = sum(own[0] * (answer > 0) for own, answer in zip(weights, answers, strict=True))
        if self.fault == "noisy":
            score += next(NOISE)
        if self.fault == "equal":
            score = 1.0
        content = place.files.write(f"{score} {answers}".encode())
        kept = None if self.fault == "unkept" else place.objects.put(content)
        outcome = float("nan") if self.fault == "nan" else score
        return Rollout(request, outcome, log if request.log else None, 0.0, None, kept)

    def _log(
        self, weights: Sequence[Sequence[float]], default: Sequence[int], answers: Sequence[float]
    ) -> Trajectory:
        rows = [(own, float(i == d)) for ws, d in zip(weights, default, strict=True)
                for i, own in enumerate(ws)]  # fmt: skip
        candidates = np.array(rows, dtype=[("weight", "<f8"), ("default", "<f8")])
        question = np.repeat(np.arange(len(weights)), [len(own) for own in weights])
        if self.fault == "infinite":
            candidates["weight"][0] = np.inf
        if self.fault == "short":
            candidates = candidates[1:]
        if self.fault == "scattered":
            question = question[::-1]
        shift = 7 if self.fault == "beyond" else 0
        records = [(d + shift, a, 1.0, -0.5) for d, a in zip(default, answers, strict=True)]
        kinds = [("default", "<i8"), ("answer", "<f8"), ("logit", "<f8")]
        decisions = np.array(records, dtype=[*kinds, ("log_probability", "<f8")])
        return Trajectory(("weight", "default"), decisions, "default", candidates, question)

    def builds(self) -> Mapping[str, Build]:
        return {}

    def columns(self, outcome: float) -> Mapping[str, float]:
        return {"weight": outcome}

    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        return Scorers({})

    def scorer(self, data: Mapping[str, Any]) -> Scorer:
        raise NotImplementedError

    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        nothing = np.zeros(len(after[0]) + (self.fault == "credit"))
        return Credit(nothing, nothing)


def weights(rule: Rule = PICK, fault: Fault = "none") -> Weights:
    sets = FeatureSets(("weight",), ("weight",), ("weight",), ("weight",))
    report = Report("weight", ("weight",))
    return Weights(
        "weights", "which to pay for", rule, ("-O2",), "weight paid", "default", sets, report,
        fault=fault,
    )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, plugin: Plugin) -> Workplace:
    corpus = Corpus(tmp_path)
    files, objects = FileStore(tmp_path / "files"), FileStore(tmp_path / "store" / "objects")
    return Workplace(corpus, plugin, Limits(), files, objects)


UNIT = Module("demo/unit.o", "demo", "c", "0" * 64, ())


@pytest.mark.parametrize("rule", [THRESHOLD, PICK, VALUE])
def test_sound_problem_passes(rule: Rule, place: Workplace) -> None:
    check_problem(weights(rule), place, [UNIT])


@pytest.mark.parametrize(
    ("rule", "fault", "said"),
    [
        (PICK, "equal", "nothing to learn"),
        (THRESHOLD, "equal", "nothing to learn"),
        (PICK, "nan", "its weight is nan"),
        (PICK, "noisy", "not the same; a learner would chase the noise"),
        (PICK, "deaf", "given and not taken"),
        (THRESHOLD, "deaf", "given and not taken"),
        (PICK, "stubborn", "not the default's"),
        (PICK, "beyond", "a default is none of its question's actions"),
        (THRESHOLD, "beyond", "a default is none of its question's actions"),
        (PICK, "short", "do not belong together"),
        (PICK, "scattered", "do not stand together"),
        (PICK, "infinite", "not finite"),
        (PICK, "mute", "has a question"),
        (PICK, "credit", "a change and a share for each decision"),
        (PICK, "unkept", "was to be kept"),
    ],
)
def test_unsound_compiles_are_named(rule: Rule, fault: Fault, said: str, place: Workplace) -> None:
    with pytest.raises(ProblemError, match=said):
        check_problem(weights(rule, fault), place, [UNIT])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Some weights"}, "no name"),
        ({"default_column": "answer"}, "one column"),
        ({"levels": ("O2",)}, "optimisation levels"),
        ({"levels": ()}, "optimisation levels"),
        ({"score": " "}, "score"),
        ({"summary": ""}, "what is decided"),
        ({"report": Report("price", ("weight",))}, "its report does not have"),
        ({"features": FeatureSets((), (), (), ())}, "names no features"),
    ],
)
def test_unsound_descriptions_are_named(
    change: dict[str, Any], said: str, place: Workplace
) -> None:
    with pytest.raises(ProblemError, match=said):
        check_problem(replace(weights(), **change), place, [UNIT])


def test_inlining_for_size_is_a_problem(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    """Through the compiler itself."""
    files, objects = FileStore(tmp_path / "files"), FileStore(tmp_path / "objects")
    place = Workplace(small_corpus, plugin, Limits(), files, objects)
    check_problem(find_problem("inlining-size"), place, small_corpus.modules)
