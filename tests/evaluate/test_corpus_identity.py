import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.cli import main as command_line
from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import llvm_layout
from nestor.corpus.model import Corpus, CorpusError
from nestor.evaluate.identity import CorpusIdentity, check_units, select_modules
from nestor.policy import bundle, network
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.rollout import Request
from nestor.problems.inlining_size import ways
from nestor.problems.inlining_size.features.site import SITE_FEATURES
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.rollout.gate import probe_folder
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.temporary import PREFIX
from tests.inlining import PROBLEM, policy_named

CC1 = "-cc1 -triple x86_64-pc-linux-gnu -Oz -emit-obj -mrelocation-model pic -pic-level 2"
C, CXX, SILENT, BROKEN = "demo/c.o", "demo/cxx.o", "demo/silent.o", "demo/broken.o"


@pytest.fixture(scope="module")
def corpus(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Return a corpus of two modules with decisions, one without, and one that is damaged."""
    folder = tmp_path_factory.mktemp("corpus")
    silent = folder / "silent.c"
    silent.write_text("int answer(void) { return 42; }\n")
    sources = {C: probe_folder() / "probe.c", CXX: probe_folder() / "probe.cpp", SILENT: silent}
    (folder / "demo").mkdir()
    front_end = [str(toolchain.clang), "-Oz", "-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"]
    for name, source in sources.items():
        command = [*front_end, str(source), "-o", str(folder / f"{name}.bc")]
        subprocess.run(command, check=True, timeout=60)
    (folder / f"{BROKEN}.bc").write_bytes(b"no bitcode")
    names = [*sources, BROKEN]
    for name in names:
        (folder / f"{name}.cmd").write_bytes("\0".join(CC1.split()).encode())
    (folder / "corpus_description.json").write_text(
        json.dumps({"has_thinlto": False, "modules": names})
    )
    return llvm_layout.read(folder)


@pytest.fixture(scope="module")
def sound(corpus: Corpus) -> Corpus:
    """Return the same corpus without the damaged module."""
    return replace(corpus, modules=tuple(m for m in corpus.modules if m.name != BROKEN))


@pytest.fixture(scope="module")
def random_policy(
    sound: Corpus, plugin: Plugin, tmp_path_factory: pytest.TempPathFactory
) -> NamedPolicy:
    """Return a random network that sees all of LLVM's features and answers with deviations."""
    with LocalPool(PROBLEM, sound, plugin) as pool:
        (done,) = pool.run([Request(sound.module(C), DEFAULT, log=True)])
    assert done.trajectory is not None
    features = tuple(name for name in done.trajectory.features if name not in SITE_FEATURES)
    rng = np.random.default_rng(11)
    normalisation = network.LogNormalisation(
        rng.uniform(0, 3, len(features)), np.full(len(features), 0.5)
    )
    layers = network.initial_layers((len(features), 24, 2), rng)
    path = tmp_path_factory.mktemp("policy") / "random.safetensors"
    bundle.save(
        network.build(features, "deviation", normalisation, layers, problem="inlining-size"), path
    )
    return policy_named(str(path))


def check(corpus: Corpus, plugin: Plugin, policy: NamedPolicy, **more: Any) -> CorpusIdentity:
    with LocalPool(PROBLEM, corpus, plugin, PoolSettings(jobs=2)) as pool:
        return check_units(pool, corpus.modules, policy, **more)


def test_the_default_is_identical_in_every_way(sound: Corpus, plugin: Plugin) -> None:
    seen: list[tuple[int, int]] = []
    result = check(
        sound, plugin, policy_named("default"), progress=lambda _, *counts: seen.append(counts)
    )
    assert result.holds
    # idle, default, logged and channel against stock; the log's count against the channel's
    assert (result.comparisons, result.identical) == (3 * 5, 3 * 5)
    assert [module.decisions > 0 for module in result.modules] == [True, True, False]
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("name", ["mlgo2020", "random"])
def test_a_policy_is_the_same_in_c_and_in_python(
    sound: Corpus,
    plugin: Plugin,
    random_policy: NamedPolicy,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = random_policy if name == "random" else policy_named(name)
    monkeypatch.chdir(tmp_path)
    result = check(sound, plugin, policy)
    assert not list(tmp_path.iterdir()), "nothing is left in the user's folder"
    assert result.to_json()["differing"] == result.to_json()["failures"] == []
    assert (result.comparisons, result.identical) == (3 * 3, 3 * 3)
    assert result.decisions > 50


def test_what_the_channel_does_not_offer_is_compared_without_it(
    sound: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    features = ("cost_estimate", "callee_disappears", "caller_code_size")
    normalisation = network.LogNormalisation(np.full(3, 1.5), np.full(3, 0.5))
    layers = network.initial_layers((3, 8, 1), np.random.default_rng(5))
    bundle.save(
        network.build(features, "deviation", normalisation, layers, problem="inlining-size"),
        tmp_path / "p",
    )
    result = check(sound, plugin, policy_named(str(tmp_path / "p")))
    assert result.holds
    assert result.comparisons == 3


def test_a_policy_that_python_reads_differently_is_found(sound: Corpus, plugin: Plugin) -> None:
    # The file says never, Python is told always.
    never, always = policy_named("never"), policy_named("always")
    result = check(sound, plugin, replace(never, policy=always.policy))
    assert not result.holds
    found = {(d.module, d.way, d.reference) for d in result.differing if d.what == "the object"}
    assert found == {(name, "channel, Python", "release") for name in (C, CXX)}
    assert any(d.what.startswith("asked ") for d in result.differing)
    assert result.identical == result.comparisons - len(result.differing)


def test_a_plugin_that_ignores_the_policy_is_found(
    sound: Corpus, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(plugin: Plugin, policy: Path | str, **more: Any) -> list[str]:
        return plugin_flags(plugin, policy if more.get("log") is None else "default", **more)

    monkeypatch.setattr(ways, "plugin_flags", forgetful)
    result = check(sound, plugin, policy_named("never"))
    assert {(d.module, d.way) for d in result.differing} >= {(C, "logged"), (CXX, "logged")}


def test_failures_are_counted_and_named(corpus: Corpus, plugin: Plugin) -> None:
    result = check(corpus, plugin, policy_named("default"))
    assert not result.holds
    assert (result.comparisons, result.identical) == (4 * 5, 3 * 5)
    assert result.differing == ()
    ways = ["stock", "idle", "default", "logged", "channel"]
    assert [(f.what, f.side) for f in result.failures] == [(BROKEN, way) for way in ways]
    assert all("error" in failure.reason for failure in result.failures)


def test_a_time_out_is_a_failure(sound: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, sound, plugin, PoolSettings(2, timeout=0.001)) as pool:
        result = check_units(pool, sound.modules[:1], policy_named("mlgo2020"))
    assert not result.holds
    assert {f.side for f in result.failures} == {"release", "logged", "channel, Python"}
    assert result.identical == 0


def test_a_policy_with_unknown_features_fails_with_their_names(
    sound: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    normalisation = network.LogNormalisation(np.zeros(1), np.ones(1))
    layers = network.initial_layers((1, 1), np.random.default_rng(0))
    bundle.save(
        network.build(
            ("phase_of_moon",), "decision", normalisation, layers, problem="inlining-size"
        ),
        tmp_path / "p",
    )
    result = check(sound, plugin, policy_named(str(tmp_path / "p")))
    assert not result.holds
    reasons = [f.reason for f in result.failures if f.what == C]
    assert len(reasons) == 3
    assert all("phase_of_moon" in reason for reason in reasons)


def test_an_interrupt_does_not_wait_and_leaves_nothing(
    sound: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupt(_stage: str, done: int, _total: int) -> None:
        if done > 0:  # several may end at once
            raise KeyboardInterrupt

    many = sound.modules * 100
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        check(replace(sound, modules=many), plugin, policy_named("default"), progress=interrupt)
    assert time.monotonic() - before < 10
    assert list(tmp_path.glob(f"{PREFIX}*/*")) == []
    assert not any("nestor-rollout" in t.name for t in threading.enumerate())


def test_the_split_is_checked(corpus: Corpus) -> None:
    assert select_modules(corpus, "all") == corpus.modules
    with pytest.raises(CorpusError, match="split test"):
        select_modules(corpus, "test")


def test_the_command(corpus: Corpus, plugin: Plugin, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["identity", str(corpus.root), "--jobs", "2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["modules"], found["comparisons"], found["identical"]) == (4, 20, 15)
    assert (found["differing"], len(found["failures"])) == ([], 5)
    assert found["hashes"]["plugin"] == plugin.digest


def test_the_command_succeeds_where_all_is_identical(sound: Corpus, tmp_path: Path) -> None:
    description = json.dumps({"has_thinlto": False, "modules": [C]})
    (tmp_path / "corpus_description.json").write_text(description)
    (tmp_path / "demo").mkdir()
    for suffix in (".bc", ".cmd"):
        (tmp_path / f"{C}{suffix}").write_bytes((sound.root / f"{C}{suffix}").read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "nestor", "identity", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "identical; 1 module, 5 of 5 comparisons hold" in done.stdout
