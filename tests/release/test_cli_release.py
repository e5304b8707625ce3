"""``nestor release`` from the command line, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.command import nestor


def test_json(tmp_path: Path) -> None:
    done = nestor("release", "threshold:50", "--as", "mlir", "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["form"] == "mlir" and said["files"] == [str(tmp_path / "inliner.mlir")]
    assert 'tf_saved_model.index_path = ["cost_estimate"]' in Path(said["files"][0]).read_text()


def test_it_says_how_to_use_it(tmp_path: Path) -> None:
    done = nestor("release", "threshold:50", "--as", "llvm-header", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"use it:  cmake -C {tmp_path}/llvm.cmake" in done.stdout
    assert str(tmp_path / "InlinerSizeModel.h") in done.stdout.splitlines()


@pytest.mark.parametrize("form", ["llvm-header", "mlir", "tflite"])
@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("shipped", "shipped answers with deviations from the default heuristic"),
        ("shipped-eviction", "is for policies about inlining-size, and shipped-eviction"),
        ("default", "'default' is the compiler's own heuristic"),
    ],
)
def test_refused(form: str, policy: str, why: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = nestor("release", policy, "--as", form, "--out", str(out))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert why in line and line.endswith(".")
    assert not out.exists()


def test_features_that_llvm_lacks_are_named(tmp_path: Path) -> None:
    from nestor.compiler.toolchain import find
    from nestor.policy import bundle
    from nestor.policy.names import NamedPolicy
    from nestor.policy.trees import TreesPolicy
    from nestor.release.in_tree import ReleaseError, in_tree_policy
    from tests.release.policies import trees

    policy = trees()
    meta = {"features": ("cost_estimate", "callee_disappears", "callee_uses", "inlining_default")}
    fields = {**policy.metadata.to_json(), **{k: list(v) for k, v in meta.items()}}
    changed = TreesPolicy(
        type(policy.metadata).from_json(fields),
        **{name: getattr(policy, name) for name in ("root", "feature", "threshold")},
        **{name: getattr(policy, name) for name in ("left", "right", "value")},
    )
    assert bundle.to_bytes(changed)
    with pytest.raises(ReleaseError, match=r"callee_disappears, callee_uses, inlining_default\)"):
        in_tree_policy(NamedPolicy.of(changed, "mine"), "mlir", find())


def test_a_model_takes_one_policy(tmp_path: Path) -> None:
    done = nestor("release", "never", "always", "--as", "mlir", "--out", str(tmp_path))
    assert done.returncode == 1 and "takes one policy, not 2" in done.stderr
