"""Vocabularies of embeddings as files."""

import json
from pathlib import Path

import numpy as np
import pytest

from nestor.files import ReadError
from nestor.problems.inlining_size.features.vocabulary import (
    VocabularyError,
    from_llvm,
    identity,
    text,
)


def test_a_file_has_a_line_for_each_entity() -> None:
    written = text({"Ret": np.array([1.4, -2.6]), "IntegerTy": np.array([0.0, 7.0])})
    assert written.splitlines() == [
        "nestor-vocabulary 1",
        "dimension 2",
        "entity Ret 1 -3",
        "entity IntegerTy 0 7",
    ]


def test_the_identity_counts_each_entity() -> None:
    assert text(identity(("Ret", "Br"))).splitlines()[2:] == ["entity Ret 1 0", "entity Br 0 1"]


@pytest.mark.parametrize("vectors", [{}, {"Ret": np.array([2.0**20 + 1])}])
def test_what_the_plugin_would_refuse_is_not_written(vectors: dict[str, np.ndarray]) -> None:
    with pytest.raises(VocabularyError):
        text(vectors)


def test_llvms_own_format_is_read_with_its_weights(tmp_path: Path) -> None:
    sections = {"Opcodes": {"Ret": [1, 2]}, "Types": {"IntegerTy": [1, 0]},
                "Arguments": {"Constant": [0, 5]}}  # fmt: skip
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(sections))
    found = from_llvm(path, scale=10)
    assert {name: vector.tolist() for name, vector in found.items()} == {
        "Ret": [10, 20],
        "IntegerTy": [5, 0],
        "Constant": [0, 10],
    }


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"Opcodes": {"Ret": [1]}, "Types": {"IntegerTy": [1, 2]}, "Arguments": {}}',
     '{"Opcodes": {"Ret": ["x"]}, "Types": {}, "Arguments": {}}', '{"Opcodes": 3}'],
)  # fmt: skip
def test_another_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(content)
    with pytest.raises(VocabularyError, match="is no vocabulary of LLVM's"):
        from_llvm(path)
    with pytest.raises(ReadError, match="as a vocabulary"):
        from_llvm(tmp_path / "absent")
