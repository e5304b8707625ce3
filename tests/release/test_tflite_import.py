"""TFLite models become policies, or a sentence says why not; no file does anything else."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.problem import PROBLEM
from nestor.release.tflite.export import model
from nestor.release.tflite.flatbuffer import Node, Number, Numbers, encode, root_of
from nestor.release.tflite.importing import import_tflite
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.command import nestor
from tests.conftest import module_named
from tests.release.policies import rows
from tests.release.test_tflite import network

DATA = Path(__file__).parent / "data"
TENSORFLOW = DATA / "z_scores.tflite"
"""Made by TensorFlow (make_z_scores.py)."""


def imported(data: bytes) -> MlpPolicy:
    return import_tflite(data, "inlining-size", {})


@pytest.mark.parametrize("name", ["quantile", "z-score"])
def test_what_was_exported_comes_back(name: str) -> None:
    policy = network(name)
    found = imported(model(policy))
    assert found.features == policy.features
    assert found.metadata.transform == policy.metadata.transform
    x = rows(len(policy.features))
    assert found.logits(x).tobytes() == policy.logits(x).tobytes()


def test_a_model_of_tensorflow() -> None:
    policy = imported(TENSORFLOW.read_bytes())
    reference = np.load(DATA / "z_scores.npz", allow_pickle=False)
    # Inputs that nothing reads, such as the reward, are left out.
    assert sorted(policy.features) == sorted(reference["features"])
    assert policy.metadata.transform == "quantile-z-score"
    order = [list(reference["features"]).index(name) for name in policy.features]
    logits = policy.logits(reference["rows"][:, order])
    expected = reference["logits"][:, 1] - reference["logits"][:, 0]
    assert (np.abs(logits - expected) < 1e-4 * np.maximum(1, np.abs(expected))).all()
    assert ((logits > 0) == (expected > 0)).all()
    assert 0.05 < (logits > 0).mean() < 0.95


def test_the_command_writes_a_policy(tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    done = nestor("import", str(TENSORFLOW), "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["transform"] == "quantile-z-score" and said["path"] == str(out)
    assert said["provenance"]["imported_from"] == "tflite"
    assert bundle.load(out).features == tuple(said["features"])


def test_the_command_says_why_not(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(network("log")))
    done = nestor("import", str(path), "--out", str(tmp_path / "x.safetensors"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"nestor: Cannot import {path}: it has the operator ABS, and a ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.safetensors").exists()


REFUSED: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", "it is no TFLite model"),
    "text": (b"hello, this is text", "it is no TFLite model"),
    "cut": (model(network("quantile"))[:2000], "it is cut short or damaged"),
    "no graph": (encode({0: Number("I", 3)}, b"TFL3"), "it has 0 graphs, and a policy has one"),
    "no decision": (
        encode({2: [{1: Numbers("i", ()), 2: Numbers("i", ())}], 4: [{}]}, b"TFL3"),
        "none of its outputs is a decision",
    ),
    "missing tensor": (
        encode({2: [{1: Numbers("i", (7,))}], 4: [{}]}, b"TFL3"),
        "it refers to a tensor that is not there",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, why = REFUSED[name]
    with pytest.raises(PolicyError, match=why):
        imported(data)


@pytest.mark.parametrize("code", [14, 28, 32, 250])
def test_an_operator_is_named(code: int) -> None:
    names = {14: "LOGISTIC", 28: "TANH", 32: "CUSTOM", 250: "number 250"}
    root: Node = {
        1: [{3: Number("i", code)}],
        2: [
            {
                0: [{1: Number("b", 4), 3: "action_a:0"}, {3: "b"}],
                1: Numbers("i", (0,)),
                2: Numbers("i", (1,)),
                3: [{1: Numbers("i", (0,)), 2: Numbers("i", (1,))}],
            }
        ],
        4: [{}],
    }
    with pytest.raises(PolicyError, match=f"the operator {names[code]}"):
        imported(encode(root, b"TFL3"))


def test_the_writer_is_read_back() -> None:
    root: Node = {
        0: Number("b", -3),
        2: Number("I", 4_000_000_000),
        3: "text",
        4: Numbers("f", (0.5, -2.0)),
        5: b"\1\2\3",
        6: [{0: Number("i", 7)}, {}],
        7: {1: "inner"},
    }
    table = root_of(encode(root, b"ABCD"), b"ABCD")
    assert table.number(0, "b") == -3 and table.number(2, "I") == 4_000_000_000
    assert table.number(1, "i", 5) == table.number(99, "i", 5) == 5
    assert table.data(3) == b"text" and table.data(5) == b"\1\2\3"
    assert table.numbers(4, "f") == (0.5, -2.0) and table.numbers(1, "i") == ()
    assert [each.number(0, "i") for each in table.tables(6)] == [7, 0]
    inner = table.table(7)
    assert inner is not None and inner.data(1) == b"inner"
    assert table.table(1) is None


def test_damaged_files_are_refused_or_read() -> None:
    """Cut anywhere, or with bytes changed: a policy or one sentence, and nothing else."""
    rng = np.random.default_rng(5)
    refused = 0
    for data in (model(network("z-score")), TENSORFLOW.read_bytes()):
        size = len(data)
        cases = [data[: rng.integers(0, size)] for _ in range(150)]
        for number in range(600):
            mutant = bytearray(data)
            for place in rng.integers(0, size, 1 + number % 8):
                mutant[place] = rng.choice([0, 1, 127, 128, 255, int(rng.integers(0, 256))])
            cases.append(bytes(mutant))
        for case in cases:
            try:
                assert imported(case).features
            except PolicyError as error:
                refused += 1
                assert 0 < len(str(error)) < 400 and "\n" not in str(error)
    assert refused > 600


@pytest.mark.corpus
def test_the_plugin_decides_by_it(plugin: Plugin, tiny_corpus: Corpus) -> None:
    policy = imported(TENSORFLOW.read_bytes())
    module = module_named(tiny_corpus, "bzip2/compress")
    with LocalPool(PROBLEM, tiny_corpus, plugin, PoolSettings(jobs=1)) as pool:
        (result,) = pool.run([Request(module, NamedPolicy.of(policy), log=True)])
    assert result.trajectory is not None, result.failure
    logits = policy.logits(result.trajectory.rows(policy.features))
    assert len(logits) > 50 and len(np.unique(logits)) > 10
    assert (logits == result.trajectory.decisions["logit"]).all()
