"""The copies build: what a program's objects weigh as parts of larger programs."""

from pathlib import Path

import pytest

from benchmarks.copies_trials import table, trials_of
from nestor.build.build import Job
from nestor.build.copies import CopiesBuild
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM, policy_named

INLINE_FUNCTION = """
#pragma once
int next(int);
inline int helper(int v) { return next(next(v) * 3 + 1) + next(v ^ 77) * 5; }
"""


@pytest.fixture
def program_with_a_header(tmp_path: Path, plugin: Plugin) -> Corpus:
    """One C++ program whose header defines a function that one module of three calls, once."""
    work = tmp_path / "src"
    work.mkdir()
    (work / "helper.h").write_text(INLINE_FUNCTION)
    (work / "a.cpp").write_text('#include "helper.h"\nint a(int v) { return helper(v) + 1; }\n')
    (work / "b.cpp").write_text("int calls; int next(int v) { return v + ++calls; }\n")
    (work / "main.cpp").write_text("int a(int); int main(int n, char **) { return a(n) & 1; }\n")
    make = (
        "program: a.o b.o main.o\n\t$(CXX) -o $@ $^\n"
        "%.o: %.cpp\n\t$(CXX) -O2 -ffunction-sections -c $<\n"
    )
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})


def test_more_copies_turn_a_saving_into_a_loss(
    program_with_a_header: Corpus, plugin: Plugin
) -> None:
    """Inlining the only call drops the only copy, which saves little where there are others."""
    corpus, build = program_with_a_header, CopiesBuild()
    (program,) = corpus.programs
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        builder = build.incremental(pool, program, policy_named("never"), build.modes)
        kept = builder.build({})
        builder.close()
        builder = build.incremental(pool, program, policy_named("always"), build.modes)
        inlined = builder.build({})
        builder.close()
    changes = {mode: inlined.scores()[mode] - kept.scores()[mode] for mode in build.modes}
    assert changes["gc"] < 0 < changes["copies-100"]
    assert changes["gc"] < changes["copies-3"] < changes["copies-10"] < changes["copies-100"]
    helper = next(i for i, n in kept.trajectories["program/a.o"].names.items() if "helper" in n)
    weights = {mode: kept.functions[mode].get(helper, 0.0) for mode in build.modes}
    assert weights["copies-10"] == pytest.approx(weights["gc"] / 10)
    changed = inlined.columns["copies-100"]["text"] - kept.columns["copies-100"]["text"]
    assert changed > 0, "code is weighed likewise"


def test_a_link_mode_is_the_link(program_with_a_header: Corpus, plugin: Plugin) -> None:
    corpus, link = program_with_a_header, PROBLEM.builds()["link"]
    (program,) = corpus.programs
    jobs = [Job(program, "icf", policy_named("default"))]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        ours, usual = (build.run(pool, jobs)[0] for build in (CopiesBuild(), link))
    assert ours.columns == usual.columns


def test_who_pays_for_inlining_a_header_s_function(
    program_with_a_header: Corpus, plugin: Plugin
) -> None:
    """The caller is the module's own: what it grows by is not divided by the copies."""
    corpus = program_with_a_header
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        (trial,) = trials_of(pool, corpus.module("program/a.o"))
    assert (trial["callers"], trial["sites"], trial["only_use"]) == ("own", 1, True)
    assert trial["callee"] < 0 < trial["own"]
    assert trial["comdat"] == 0
    (row,) = table([trial, trial])["rows"]
    alone, in_ten = row[-3], row[-1]
    assert row[3] == 2
    assert alone == pytest.approx(trial["own"] + trial["callee"])
    assert in_ten == pytest.approx(trial["own"] + trial["callee"] / 10)
