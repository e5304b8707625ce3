"""The example of docs/internals/add-your-own.md runs and learns something."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.learn.checkpoint import CheckpointError
from tests.conftest import SOURCE, make_corpus

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "hoisting.py"

# What both sides of a branch compute, which GVNHoist moves before it.
BRANCHES = """
struct s { int a, b, c, d; };
int walk(struct s *p, int c) {
  if (c & 1) {
    if (c & 2) { p->a += p->b * p->c; p->d = c; } else { p->a -= p->b * p->c; p->d = 3; }
  } else {
    if (c & 4) { p->a ^= p->b * p->c; p->d = 5; } else { p->a |= p->b * p->c; p->d = c + 7; }
  }
  return p->a;
}
int main(int argc, char **argv) {
  (void)argv;
  struct s v = {argc, argc, argc, argc};
  return walk(&v, argc);
}
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hoisting", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


def test_example_trains_a_policy(toolchain: Toolchain, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", toolchain, {"branches": BRANCHES, "plain": SOURCE})
    example = load()
    policy = example.main(corpus.root, tmp_path / "run", steps=2)
    assert policy.features == example.FEATURES
    assert (tmp_path / "run" / "policy.safetensors").exists()
    again = example.main(corpus.root, tmp_path / "run", steps=2)
    assert (again.flatten_parameters() == policy.flatten_parameters()).all()
    with pytest.raises(CheckpointError, match="another --out"):
        example.main(corpus.root, tmp_path / "run", steps=3)
