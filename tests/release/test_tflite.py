"""TFLite models decide as the policy does, under the names that LLVM looks for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.release.forms import release_in_tree
from nestor.release.in_tree import ReleaseError
from nestor.release.tflite.export import model
from tests.release.policies import FEATURES, POLICIES, rows

NETWORKS = ["log", "quantile", "z-score"]
CLOSE = 1e-4


def network(name: str) -> MlpPolicy:
    policy = POLICIES[name]
    assert isinstance(policy, MlpPolicy)
    return policy


def interpreted(data: bytes, x: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the interpreter's decisions [rows] and logits [rows]."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    interpreter = runtime.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    inputs = interpreter.get_input_details()
    assert [each["index"] for each in inputs] == list(range(x.shape[1]))
    assert [each["name"] for each in inputs] == [f"action_{name}:0" for name in FEATURES]
    decision, outputs = interpreter.get_output_details()
    assert decision["name"] == "StatefulPartitionedCall:0"
    assert decision["dtype"] is np.int64 and list(decision["shape"]) == [1]
    decisions, logits = [], []
    for row in x:
        for index, value in enumerate(row):
            interpreter.set_tensor(index, np.array([value]))
        interpreter.invoke()
        decisions.append(interpreter.get_tensor(decision["index"])[0])
        (values,) = interpreter.get_tensor(outputs["index"])
        logits.append(values[0] if len(values) == 1 else values[1] - values[0])
    return np.array(decisions), np.array(logits)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_interpreter_decides_alike(name: str) -> None:
    policy = network(name)
    x = rows(len(policy.features))
    decisions, logits = interpreted(model(policy), x)
    expected = policy.logits(x)
    # z-scores have no bound, and so have logits over them: an error counts relative to those.
    assert (np.abs(logits - expected) < CLOSE * np.maximum(1, np.abs(expected))).all()
    assert (decisions == (expected > 0)).all()
    assert 0.05 < decisions.mean() < 0.95


def test_the_folder_is_that_of_development_mode(tmp_path: Path, toolchain: Toolchain) -> None:
    named = NamedPolicy.of(network("quantile"))
    released = release_in_tree(named, "tflite", tmp_path, toolchain)
    assert [path.name for path in released.files] == ["model.tflite", "output_spec.json"]
    (spec,) = json.loads((tmp_path / "output_spec.json").read_text())
    assert spec["logging_name"] == "inlining_decision"
    tensor = spec["tensor_spec"]
    assert (tensor["name"], tensor["port"]) == ("StatefulPartitionedCall", 0)
    assert (tensor["type"], tensor["shape"]) == ("int64_t", [1])


def test_the_bytes_depend_on_the_policy_alone() -> None:
    assert model(network("log")) == model(network("log")) != model(network("quantile"))


def test_trees_are_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    with pytest.raises(ReleaseError, match="TFLite has no operator: use --as llvm-header"):
        release_in_tree(NamedPolicy.of(POLICIES["trees"]), "tflite", tmp_path, toolchain)
    assert not list(tmp_path.iterdir())
    assert issubclass(ReleaseError, NestorError)
