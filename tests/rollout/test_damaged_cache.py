"""A cache that was damaged mends itself, and one that has no room says so."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.rollout.kept import is_whole, keep, keep_arrays, read_arrays
from tests.cli.test_ending import assert_one_sentence, run

GUARD = ("guard", "--policy", "never", "--program", "one", "--mode", "gc", "--json")


@pytest.fixture
def cache(tmp_path: Path, plugin: Plugin) -> Path:
    """A cache of this test's own that has the plugin."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "plugins").symlink_to(plugin.path.parent.parent)
    return folder


def guard(cache: Path, corpus: Corpus, *options: str) -> "subprocess.CompletedProcess[str]":
    out = corpus.root / "guard.txt"
    return run(*GUARD, "--corpus", str(corpus.root), "--out", str(out), *options, cache=cache)


@pytest.mark.parametrize("options", [("--lto", "thin"), ("--policy", "distilled", "--summary")])
@pytest.mark.parametrize("damage", ["cut", "altered"])
def test_guard_mends_what_it_kept(
    cache: Path, small_corpus: Corpus, options: tuple[str, ...], damage: str
) -> None:
    first = guard(cache, small_corpus, *options)
    assert first.returncode == 0, first.stderr
    objects = sorted(path for name in ("lto", "objects") for path in cache.glob(f"{name}/**/*.o"))
    assert objects
    contents = [path.read_bytes() for path in objects]
    for path, content in zip(objects, contents, strict=True):
        middle = len(content) // 2
        other = bytes([content[middle] ^ 0xFF])
        path.write_bytes(
            content[:100] if damage == "cut" else content[:middle] + other + content[middle + 1 :]
        )
    second = guard(cache, small_corpus, *options)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout) == json.loads(first.stdout)
    assert [path.read_bytes() for path in objects] == contents


@pytest.mark.parametrize("options", [("--lto", "thin"), ("--policy", "distilled", "--summary")])
def test_guard_says_that_the_cache_is_full(
    plugin: Plugin, small_corpus: Corpus, full_disk: Path, options: tuple[str, ...]
) -> None:
    (full_disk / "plugins").symlink_to(plugin.path.parent.parent)
    done = guard(full_disk, small_corpus, *options)
    assert_one_sentence(
        done, f"nestor: {full_disk}/", ": no space left on device; make room there, or name another"
    )


def test_arrays(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "arrays.npz"
    arrays = {"text": np.frombuffer(b"text", np.uint8), "numbers": np.arange(1000.0)}
    assert read_arrays(path) is None
    keep_arrays(arrays, path)
    found = read_arrays(path)
    assert found is not None
    assert found.keys() == arrays.keys()
    assert all((found[name] == arrays[name]).all() for name in arrays)
    content = path.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert read_arrays(path) is None
    middle = content.index(b"numbers.npy") + 60
    path.write_bytes(content[:middle] + b"\0\1\2\3" + content[middle + 4 :])
    assert read_arrays(path) is None


def test_an_object_is_used_only_as_it_was_kept(tmp_path: Path) -> None:
    file, kept = tmp_path / "file", tmp_path / "cache" / "a.o"
    file.write_bytes(b"object" * 1000)
    assert not is_whole(kept)
    keep(file, kept)
    assert is_whole(kept)
    os.truncate(kept, 5999)
    assert not is_whole(kept)
    keep(file, kept)
    assert is_whole(kept)
