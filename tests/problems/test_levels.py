"""Policies on corpora of levels at which they decide nothing."""

from dataclasses import replace

import pytest

from nestor.corpus.model import Corpus, CorpusError
from nestor.problem.levels import decides, require_decided, require_decided_at
from nestor.problem.problem import ProblemError
from nestor.problem.registry import find_problem, problem_names

LEVELS = {
    "inlining-size": {"-Oz"},
    "inlining-size-os": {"-Os"},
    "inlining-speed": {"-O2", "-O3"},
    "regalloc-eviction": {"-O1", "-O2", "-O3", "-Os", "-Oz"},
    "regalloc-priority": {"-O1", "-O2", "-O3", "-Os", "-Oz"},
}


def test_every_problem_says_where_it_decides() -> None:
    assert {name: set(find_problem(name).levels) for name in problem_names()} == LEVELS


@pytest.mark.parametrize("name", sorted(LEVELS))
def test_a_policy_needs_a_corpus_of_its_levels(small_corpus: Corpus, name: str) -> None:
    problem = find_problem(name)
    for level in ("-O1", "-O2", "-O3", "-Os", "-Oz"):
        corpus = replace(small_corpus, level=level)
        require_decided(problem, corpus, [problem.policy("default")])
        if level in LEVELS[name]:
            assert decides(problem, corpus)
            require_decided(problem, corpus)
            continue
        for policies in (None, [problem.policy("default"), problem.policy("never")]):
            with pytest.raises(CorpusError, match=f"captured at {level}, where policies for"):
                require_decided(problem, corpus, policies)


def test_the_problem_of_the_level_is_named(small_corpus: Corpus) -> None:
    size, speed = find_problem("inlining-size"), find_problem("inlining-speed")
    corpus = replace(small_corpus, level="-O3")
    with pytest.raises(CorpusError, match=r"--level -Oz, or take --problem inlining-speed\.$"):
        require_decided(size, corpus)
    with pytest.raises(CorpusError, match=r"--level -Oz, or take --problem inlining-size-os\.$"):
        require_decided(size, replace(corpus, level="-Os"))
    with pytest.raises(CorpusError, match=r"--level -O2, or take --problem inlining-size-os\.$"):
        require_decided(speed, replace(corpus, level="-Os"))
    with pytest.raises(CorpusError, match=r"--level -O2\.$"):
        require_decided(speed, replace(corpus, level="-O1"))
    with pytest.raises(ProblemError, match=r"decide at -O2 and -O3 \(--level\), or take"):
        require_decided_at(speed, "-Oz", [speed.policy("never")])
    require_decided_at(speed, "-Oz", [speed.policy("default")])
