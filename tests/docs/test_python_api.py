"""The examples of docs/reference/python-api.md run, and the page names all that is public."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import nestor
from nestor.corpus.model import Corpus
from tests.docs.pages import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "python-api.md"
_EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LISTED: Final = re.compile(r"^\| (`.+?) \|", re.MULTILINE)


@pytest.mark.usefixtures("plugin")
def test_the_examples_run_from_top_to_bottom(
    tiny_corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "tiny").symlink_to(tiny_corpus.root.resolve())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    examples = _EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == PAGE.read_text().count("```python") > 8
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert f"{len(tiny_corpus.modules)} modules" in printed
    assert "There is no corpus at no/such/folder" in printed
    assert re.search(r"shipped [+-]\d+\.\d\d % 0 failures", printed)
    assert "32.0 tensor<64x32xf32>" in printed
    assert names["again"].digest == nestor.load_policy("runs/bc/policy.safetensors").digest
    assert names["shipped"].outcome.loadable < names["stock"].outcome.loadable
    assert names["tuned"].best.total <= names["tuned"].stock.total


def test_a_closed_pool_says_so(small_corpus: Corpus) -> None:
    with nestor.open_pool(small_corpus) as pool:
        pass
    with pytest.raises(nestor.NestorError, match="This pool is closed"):
        nestor.roll_out(pool, small_corpus.modules[0])


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_an_environment_needs_time(timeout: float) -> None:
    with pytest.raises(nestor.NestorError, match="timeout is"):
        nestor.make_environment(timeout=timeout)


def test_blocks_without_an_answer_have_a_reason() -> None:
    predicted = nestor.predict_cycles([b"\xff", "90", b"", "cf"])
    assert predicted.refused[0] == "it cannot be decoded as x86-64 code"
    assert predicted.refused[2] == "it has no instruction"
    assert sorted(predicted.refused) == [0, 2, 3]
    for blocks in (b"\x90", "90"):
        with pytest.raises(nestor.NestorError, match=r"write \[block\]"):
            nestor.predict_cycles(blocks)  # type: ignore[arg-type]


def test_the_page_lists_what_is_public() -> None:
    listed = [name for row in _LISTED.findall(PAGE.read_text()) for name in re.findall(r"\w+", row)]
    assert sorted(listed) == sorted(set(nestor.__all__) - {"__version__"})


@pytest.mark.parametrize("name", nestor.__all__)
def test_every_public_name_explains_itself(name: str) -> None:
    value = getattr(nestor, name)
    assert name in dir(nestor)
    if name == "__version__":
        return
    assert inspect.getdoc(value)
    if inspect.isfunction(value):
        parameters = inspect.signature(value).parameters.values()
        assert all(one.annotation is not inspect.Parameter.empty for one in parameters)


def test_what_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = nestor.no_such_name


def test_the_import_costs_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import nestor; dir(nestor);"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('nestor')"
        " or name in ('numpy', 'tyro', 'rich', 'pathlib', 'typing', 'importlib')))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": str(ROOT / "src")})  # fmt: skip
    assert done.stdout.strip() == "['nestor']"


def test_a_setting_that_a_learner_lacks_is_named(small_corpus: Corpus, tmp_path: Path) -> None:
    with (
        nestor.open_pool(small_corpus) as pool,
        pytest.raises(nestor.NestorError, match=r"bc has no setting 'step'; there are .*steps"),
    ):
        nestor.train_policy(pool, tmp_path / "run", learner="bc", settings={"step": 1})
