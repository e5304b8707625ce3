"""What an evaluation may be given besides policies: overrides and program summaries."""

from pathlib import Path

import numpy as np

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy
from nestor.policy.network import Layer, LogNormalisation, build
from nestor.problems.inlining_size.search.overrides import Key, to_text
from nestor.problems.inlining_size.summary.program_summary import module_id
from nestor.rollout.local_pool import LocalPool
from tests.inlining import LINK, PROBLEM, policy_named


def test_overrides_stand_above_the_policy(small_corpus: Corpus, plugin: Plugin) -> None:
    """One module is kept stock; the other still changes."""
    overrides = to_text({Key("module", module_id("one.c")): False})
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        (result,) = evaluate(
            pool,
            LINK,
            small_corpus.programs,
            [policy_named("never")],
            EvaluateSettings(overrides=overrides),
        )
    assert not result.failures
    changes = {p.name: p.change_pct for p in result.programs}
    assert changes["one/one"] == 0
    assert changes["two/two"] != 0
    assert result.hashes["overrides"] is not None


def reads_link_mode(path: Path) -> NamedPolicy:
    """A policy that inlines everything where unused sections go, and nothing where they stay."""
    layer = Layer(np.array([[2.0]], np.float32), np.array([-1.0], np.float32))
    normalisation = LogNormalisation(np.zeros(1), np.ones(1))
    bundle.save(
        build(("program_link_gc",), "decision", normalisation, (layer,), problem="inlining-size"),
        path,
    )
    return policy_named(str(path))


def test_summaries_tell_how_the_program_is_linked(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    policy = reads_link_mode(tmp_path / "p.safetensors")
    modes = EvaluateSettings(modes=("gc", "no-gc"))
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        always, _, _, never = evaluate(
            pool,
            LINK,
            small_corpus.programs,
            [policy_named("always"), policy_named("never")],
            modes,
        )
        summarised = EvaluateSettings(modes=modes.modes, summary=True)
        gc, no_gc = evaluate(pool, LINK, small_corpus.programs, [policy], summarised)
    assert not gc.failures + no_gc.failures
    assert [e.summary for e in (gc, no_gc, always, never)] == [True, True, False, False]
    sizes = [[(p.name, p.policy) for p in e.programs] for e in (gc, no_gc, always, never)]
    assert sizes[0] == sizes[2]
    assert sizes[1] == sizes[3]
    assert sizes[2] != sizes[3]
