"""What goes wrong with a file is said with the file's name."""

from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.corpus.model import Corpus

_BROKEN = {
    "overrides.txt": "no overrides\n",
    "site.txt": "nestor-overrides 1\nsite 12 keep\n",
    "policy.safetensors": "no policy",
    "summary.txt": "no summary\n",
    "trajectory.log": "no log\n",
    "blocks.parquet": "no table",
    "blocks.txt": "90\n90 oops\n",
    "commands.json": "{",
    "object.o": "no object",
    "model.safetensors": "no model",
    "run/run.json": "{",
    "damaged/manifest.json": "{",
}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("evaluate --corpus CORPUS --policy never --overrides overrides.txt", "overrides.txt"),
        ("build one/one --corpus CORPUS --out x --overrides site.txt", "site.txt"),
        ("evaluate --corpus CORPUS --policy policy.safetensors", "policy.safetensors"),
        ("policy policy.safetensors", "policy.safetensors"),
        ("flags never --overrides overrides.txt", "overrides.txt"),
        ("flags never --summary summary.txt", "summary.txt"),
        ("log trajectory.log", "trajectory.log"),
        ("blocks info blocks.parquet", "blocks.parquet"),
        ("corpus capture --out c --compile-commands commands.json", "commands.json"),
        ("corpus info damaged", "damaged/manifest.json"),
        ("summary object.o --out x", "object.o"),
        ("costmodel predict 90 --model model.safetensors", "model.safetensors"),
        ("costmodel predict blocks.txt --model bound", "blocks.txt, line 2"),
        ("log --corpus CORPUS --unit nothing", "corpus info /"),
        ("compare run", "run/run.json"),
        ("guard --corpus CORPUS --policy never --out x --program nothing", "corpus"),
    ],
)
def test_a_broken_file_is_named(
    words: str,
    name: str,
    small_corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for broken, text in _BROKEN.items():
        path = tmp_path / "files" / broken
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path / "files")
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(words.replace("CORPUS", str(small_corpus.root)).split()) == 1
    said = capsys.readouterr().err.strip()
    assert name in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "problem check inlinig-size --corpus x",
            "'inlinig-size' (is 'inlining-size' meant?); there",
        ),
        ("problem check ./noise --corpus x", "is no Python module: name a folder or a .py file"),
        ("costmodel predict noise", "There is no code in noise; name a file that has some."),
        ("costmodel predict table", "'table' is a table; name one of blocks to 'nestor costmodel"),
        ("costmodel predict bytes", "neither text nor an object that can be read; name blocks in"),
        ("log empty", "empty is a folder: name a log."),
        (
            "workload measure --policy default --also shipped-eviction --corpus x",
            "as those of --policy do: leave it out of --also.",
        ),
    ],
)
def test_a_mistake_is_said_with_its_remedy(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise").touch()
    (tmp_path / "table").write_bytes(b"PAR1\xff")
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "empty").mkdir()
    assert main(words.split()) == 1
    assert said in capsys.readouterr().err
