"""The benchmark of what built programs execute: exact counts, failures first."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import cost
from nestor.compiler.plugin import Plugin
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.evaluate.test_smoke import CRASHING, HELPERS, HONEST
from tests.inlining import PROBLEM, policy_named

# A hundred thousand calls that the policy "always" removes.
LOOP = (
    HELPERS + "int main(void) { int s = 0; for (int i = 0; i < 25000; ++i) s += middle(s);"
    " return s == 1; }"
)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_fewer_calls_are_fewer_instructions(
    tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "LEAST_BYTES", 1)
    sources = {"crash": CRASHING, "good": HONEST, "loop": LOOP, "mute": HONEST}
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, sources)
    programs = [
        replace(p, smoke=() if p.project == "mute" else ("argument",)) for p in corpus.programs
    ]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        always = policy_named("always")
        rows, without, small = cost.rows(pool, programs, always, summary=False)
    assert (without, small) == (["mute/mute"], [])
    assert rows[0].program == "crash/crash"
    assert rows[0].ratio is None
    assert rows[0].failure is not None
    ratios = {r.program: r.ratio for r in rows[1:]}
    assert list(ratios) == ["good/good", "loop/loop"]
    loop = ratios["loop/loop"]
    assert loop is not None
    assert loop < 0.95
