"""Policies, overrides and logs that cannot be used: one clear error, exit status 1, no crash."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from nestor.policy import bundle
from tests.plugin.support import NEVER, SOURCE, Result, Workbench, random_network

SOUND = bundle.to_bytes(random_network(["cost_estimate", "callee_users"]))
TREES = bundle.to_bytes(NEVER)


def _header(data: bytes) -> tuple[dict[str, object], bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _file(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def _meta(**changes: object) -> bytes:
    header, data = _header(SOUND)
    metadata = header["__metadata__"]
    assert isinstance(metadata, dict)
    metadata["nestor"] = json.dumps(json.loads(metadata["nestor"]) | changes)
    return _file(json.dumps(header).encode(), data)


def _nan() -> bytes:
    return SOUND[:-4] + np.float32("nan").tobytes()


def _cycle() -> bytes:
    header, data = _header(TREES)
    entry = header["tree.feature"]
    assert isinstance(entry, dict)
    begin, end = entry["data_offsets"]
    return _file(json.dumps(header).encode(), data[:begin] + bytes(end - begin) + data[end:])


def _huge_shape() -> bytes:
    header, data = _header(SOUND)
    entry = header["layer.0.weight"]
    assert isinstance(entry, dict)
    entry["shape"] = [1 << 62, 4]
    return _file(json.dumps(header).encode(), data)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "too short"),
    "text": (lambda: b"nestor-overrides 1\n" * 9, "header"),
    "cut": (lambda: SOUND[: len(SOUND) - 1], "tensor"),
    "cut header": (lambda: SOUND[:100], "header"),
    "longer": (lambda: SOUND + b"\0", "follow"),
    "header of 2^64": (lambda: b"\xff" * 64, "header"),
    "deep": (lambda: _file(b"[" * 200_000), "nested"),
    "deep metadata": (
        lambda: _file(json.dumps({"__metadata__": {"nestor": "[" * 200_000}}).encode()),
        "nested",
    ),
    "huge shape": (_huge_shape, "layer.0.weight"),
    "NaN": (_nan, "NaN"),
    "tree that goes round": (_cycle, "after its parent"),
    "newer": (lambda: _meta(version=2), "version 2"),
    "other problem": (
        lambda: _meta(problem="regalloc-eviction"),
        "it is for regalloc-eviction, not for inlining-size",
    ),
    "no problem": (lambda: _meta(problem="?"), "'problem' is not words"),
    "other rule": (lambda: _meta(rule="pick"), "its rule is pick, and inlining needs threshold"),
    "no rule": (lambda: _meta(rule="choose"), "'rule' is none of"),
    "other kind": (lambda: _meta(kind="forest"), "forest"),
    "twice a feature": (lambda: _meta(features=["callee_users"] * 2), "duplicate"),
    "no policy": (lambda: _file(b"{}"), "not a policy"),
}


def _refused(result: Result, *words: str) -> None:
    assert result.returncode == 1, result.stderr
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1, result.stderr
    assert "nestor: " in errors[0]
    for word in words:
        assert word in errors[0]
    assert not result.object.exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_policy(bench: Workbench, name: str) -> None:
    make, word = HOSTILE[name]
    path = bench.folder / "hostile.safetensors"
    path.write_bytes(make())
    _refused(bench.compile(SOURCE, path), str(path), word)


def test_policy_paths_that_are_no_files(bench: Workbench) -> None:
    for path in (str(bench.folder / "absent"), str(bench.folder), "/dev/zero"):
        _refused(bench.compile(SOURCE, path), path)


def test_hostile_policy_with_a_log(bench: Workbench) -> None:
    path = bench.folder / "hostile.safetensors"
    path.write_bytes(_nan())
    _refused(bench.compile(SOURCE, path, log=True), "NaN")


def test_unknown_features_are_named(bench: Workbench) -> None:
    names = ["cost_estimate", "phase_of_the_moon", "inlining_default", "star_sign"]
    for log in (False, True):
        result = bench.compile(SOURCE, random_network(names), log=log)
        _refused(result, "phase_of_the_moon, star_sign")
        assert "cost_estimate" not in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "site 0123456789abcdef inline\n",
        "nestor-overrides 1\nsite 12 inline\n",
        "nestor-overrides 1\ncallee 0123456789abcdef stock\n",
    ],
)
def test_wrong_overrides(bench: Workbench, text: str) -> None:
    _refused(bench.compile(SOURCE, "default", overrides=text), "overrides")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "first line"),
        ("\0" * 9, "line 1"),
        ("nestor-program 1\n", "link"),
        ("nestor-program 1\nlink gc\nfunction 0123456789abcdef 1 2\n", "line 3"),
    ],
)
def test_wrong_programs(bench: Workbench, text: str, reason: str) -> None:
    for log in (False, True):
        result = bench.compile(SOURCE, "default", program=text, log=log)
        _refused(result, "program summary", reason)


def test_program_and_overrides_that_are_no_files(bench: Workbench) -> None:
    for option in ("program", "overrides"):
        for path in (str(bench.folder / "absent"), str(bench.folder), "/dev/zero"):
            _refused(bench.compile(SOURCE, "default", f"-nestor-{option}={path}"), path)


@pytest.mark.parametrize("temperature", ["0", "-1", "nan", "inf"])
def test_wrong_temperature(bench: Workbench, temperature: str) -> None:
    result = bench.compile(SOURCE, NEVER, "-nestor-seed=1", f"-nestor-temperature={temperature}")
    _refused(result, "temperature")


def test_log_that_cannot_be_written(bench: Workbench) -> None:
    _refused(bench.compile(SOURCE, NEVER, "-nestor-log=/dev/full"), "log", "No space left")
    path = bench.folder / "absent" / "log"
    _refused(bench.compile(SOURCE, NEVER, f"-nestor-log={path}"), str(path))
    # Nor does a module without a single decision end in a crash.
    empty = bench.compile("int x;", NEVER, "-nestor-log=/dev/full")
    assert empty.returncode in (0, 1)
