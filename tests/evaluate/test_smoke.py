"""Smoke tests: a run that fails or says something else is found, and nobody is blamed wrongly."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.evaluate.result import Evaluation
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import LINK, PROBLEM, policy_named

# How far apart two functions lie tells whether what is between them was inlined.
HELPERS = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern int getchar(void);
int begin(void) { return getchar(); }
static int step(int v) { return v * 3 + getchar(); }
int middle(int n) { return step(n) + step(n + 1) + step(n + 2) + step(n + 3); }
int end(void) { return getchar() + 1; }
static long distance(void) { return (char *)&end - (char *)&begin; }
"""
HONEST = HELPERS + "int main(int c, char **v) { return c == 2 && middle(1) ? 0 : 1; }"
TALKING = HELPERS + 'int main(void) { printf("%ld", distance() + middle(1)); return 0; }'
WRITING = (
    HELPERS
    + """int main(void) {
  FILE *f = fopen("out", "w");
  fprintf(f, "%ld", distance() + middle(1));
  return fclose(f);
}"""
)
RANDOM = HELPERS + 'int main(void) { printf("%d %d", getpid(), middle(1)); return 0; }'
CRASHING = HELPERS + "int main(void) { middle(1); abort(); }"


def evaluated(tmp_path: Path, plugin: Plugin, source: str, smoke: tuple[str, ...]) -> Evaluation:
    toolchain: Toolchain = plugin.toolchain
    corpus = make_corpus(tmp_path / "corpus", toolchain, {"one": source})
    programs = [replace(p, smoke=smoke) for p in corpus.programs]
    settings = EvaluateSettings(smoke=True)
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        (result,) = evaluate(pool, LINK, programs, [policy_named("always")], settings)
    assert result.programs[0].change_pct not in (None, 0)
    return result


@pytest.mark.parametrize("source", [HONEST, RANDOM])
def test_same_behaviour_passes(tmp_path: Path, plugin: Plugin, source: str) -> None:
    result = evaluated(tmp_path, plugin, source, ("argument",))
    assert not result.failures
    assert result.to_json()["smoke"] == {"passed": 1, "failed": 0, "without": 0}


@pytest.mark.parametrize("source", [TALKING, WRITING])
def test_another_output_is_the_policys_failure(tmp_path: Path, plugin: Plugin, source: str) -> None:
    result = evaluated(tmp_path, plugin, source, ("argument",))
    (failure,) = result.failures
    assert (failure.what, failure.side) == ("one/one", "policy")
    assert "another output" in failure.reason
    assert result.smoke is not None
    assert (result.smoke.passed, result.smoke.failed) == (0, 1)


def test_a_program_that_never_worked_is_not_the_policys_failure(
    tmp_path: Path, plugin: Plugin
) -> None:
    (failure,) = evaluated(tmp_path, plugin, CRASHING, ("argument",)).failures
    assert failure.side == "stock"
    assert "crashed" in failure.reason


def test_programs_without_a_run_are_not_run(tmp_path: Path, plugin: Plugin) -> None:
    marker = tmp_path / "was run"
    source = HELPERS + f'int main(void) {{ fopen("{marker}", "w"); return middle(1); }}'
    result = evaluated(tmp_path, plugin, source, ())
    assert not result.failures
    assert result.to_json()["smoke"] == {"passed": 0, "failed": 0, "without": 1}
    assert not os.path.lexists(marker)
