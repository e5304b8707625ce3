"""One cache, many processes: no write fails, no reader sees a part of a file."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.policy import bundle
from nestor.policy.names import named_policy
from nestor.problem.registry import find_problem
from nestor.rollout.cache import baselines, policy_path
from nestor.rollout.kept import is_whole, keep
from nestor.rollout.local_pool import LocalPool, PoolSettings

WRITERS = 4
WRITES = 200
KEYS = 5
POLICIES = 7
PROBLEM = "inlining-size"

_SPAWN = multiprocessing.get_context("spawn")


def _write(number: int, objects: list[Path], folder: Path) -> int:
    """Put objects and policy files into the cache, and remove some as a clean-up would."""
    builtins = find_problem(PROBLEM).builtins
    policies = [named_policy(f"threshold:{number}", builtins) for number in range(POLICIES)]
    for count in range(WRITES):
        kept = folder / f"{count % KEYS}.o"
        keep(objects[(number + count) % len(objects)], kept)
        policy = policy_path(policies[count % POLICIES])
        if count % 50 == number:
            kept.unlink(missing_ok=True)
            policy.unlink(missing_ok=True)
    return WRITES


def _read(objects: list[Path], folder: Path, policies: Path, stop: Path) -> tuple[int, int]:
    """Read all that is in the cache until ``stop`` exists; return the reads of whole files."""
    whole = {path.read_bytes() for path in objects}
    read_objects = read_policies = 0
    while not stop.exists():
        for path in folder.glob("*.o"):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            assert content in whole, f"{len(content)} bytes of {path.name} are no whole object"
            read_objects += 1
        for path in policies.glob("*.safetensors"):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            bundle.from_bytes(content)
            read_policies += 1
    return read_objects, read_policies


@pytest.fixture
def objects(toolchain: Toolchain, tmp_path: Path) -> list[Path]:
    """Two objects of different sizes."""
    paths = []
    for name, functions in (("small", 1), ("large", 400)):
        source, path = tmp_path / f"{name}.c", tmp_path / f"{name}.o"
        source.write_text(
            "".join(f"int f{n}(int v) {{ return v * {n}; }}\n" for n in range(functions))
        )
        assert run([toolchain.clang, "-O1", "-c", source, "-o", path]).ok
        paths.append(path)
    return paths


def test_writers_and_readers_of_one_cache(
    objects: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "a cache"
    monkeypatch.setenv("NESTOR_CACHE", str(cache))
    folder, policies, stop = cache / "objects", cache / "policies", tmp_path / "stop"
    with ProcessPoolExecutor(WRITERS + 2, _SPAWN) as processes:
        readers = [processes.submit(_read, objects, folder, policies, stop) for _ in range(2)]
        writers = [processes.submit(_write, number, objects, folder) for number in range(WRITERS)]
        try:
            assert [writer.result(300) for writer in writers] == [WRITES] * WRITERS
        finally:
            stop.touch()
        for reader in readers:
            read_objects, read_policies = reader.result(300)
            assert read_objects > 0
            assert read_policies > 0
    left = {path.name for path in folder.iterdir()}
    assert left <= {f"{key}.{kind}" for key in range(KEYS) for kind in ("o", "sha256")}
    assert {path.suffix for path in policies.iterdir()} == {".safetensors"}


def _baselines(root: Path, plugin: Plugin) -> dict[str, Path]:
    corpus = store.load(root)
    with LocalPool(find_problem(PROBLEM), corpus, plugin, PoolSettings(jobs=1)) as pool:
        return baselines(pool, corpus.modules, None)


def test_processes_that_fill_the_cache_at_once(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    with ProcessPoolExecutor(3, _SPAWN) as processes:
        roots, plugins = [small_corpus.root] * 3, [plugin] * 3
        results = list(processes.map(_baselines, roots, plugins, timeout=300))
    assert all(result == results[0] for result in results)
    assert results[0].keys() == {module.name for module in small_corpus.modules}
    assert all(is_whole(path) for path in results[0].values())


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "altered", "unsigned"])
def test_what_is_gone_or_damaged_is_compiled_again(
    small_corpus: Corpus,
    plugin: Plugin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    kept = _baselines(small_corpus.root, plugin)
    path = kept[small_corpus.modules[0].name]
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "altered":
        path.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    elif damage == "unsigned":  # as a Nestor of before left it
        path.with_suffix(".sha256").unlink()
    else:
        os.truncate(path, len(whole) - 1 if damage == "cut" else 0)
    assert _baselines(small_corpus.root, plugin) == kept
    assert path.read_bytes() == whole


def test_a_damaged_policy_file_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path))
    never = named_policy("never", find_problem(PROBLEM).builtins)
    path = policy_path(never)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert policy_path(never) == path
    assert path.read_bytes() == whole
