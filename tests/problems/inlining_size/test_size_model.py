"""The size model: its arithmetic, its file, and files that are hostile."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.files import ReadError
from nestor.problem.trajectory import LogError
from nestor.problems.inlining_size.size.fit import FitSettings, fit, linear
from nestor.problems.inlining_size.size.function_log import FunctionLog, parse
from nestor.problems.inlining_size.size.model import SizeModel, SizeModelError, load, save

COUNTS = ("instructions", "calls", "opcode_call", "opcode_load")
QUICK = FitSettings(rounds=30, least_rows=5)


def functions(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Functions whose calls weigh 5 bytes, their loads 4, and 32 bytes each; large ones fold."""
    rng = np.random.default_rng(seed)
    calls, loads = rng.integers(0, 30, count), rng.integers(0, 60, count)
    x = np.stack([calls + loads, calls, calls, loads], axis=1).astype(float)
    return x, (32 + 5 * calls + 4 * loads) * np.where(loads > 40, 0.75, 1.0)


@pytest.fixture(scope="module")
def model() -> SizeModel:
    return fit(COUNTS, *functions(600), settings=QUICK, provenance={"projects": ["one"]})


def test_the_sum_alone_finds_the_weights() -> None:
    x = functions(300)[0][:, 2:]
    found = linear(x, 32 + x @ [5.0, 4.0])
    assert np.allclose(found.weight, [5, 4], atol=1e-3)
    assert found.offset == pytest.approx(32, abs=0.05)


def test_weights_are_never_negative() -> None:
    x = functions(300)[0][:, 2:]
    assert (linear(x, 100 + x @ [5.0, -1.0]).weight >= 0).all()


def test_what_no_function_had_weighs_nothing() -> None:
    counts = np.random.default_rng(0).poisson(3.0, (400, 60)).astype(float)
    counts[:, ::2] = 0  # rounding would make something of some of these
    y = 30 + counts @ np.arange(60.0)
    assert (linear(counts, y).weight[::2] == 0).all()


def test_trees_learn_what_the_sum_misses(model: SizeModel) -> None:
    x, y = functions(200, seed=1)
    off = np.abs(model.predict(COUNTS, x) / y - 1)
    assert off.mean() < 0.03 < np.abs(model.linear.base(x) / y - 1).mean()


def test_a_function_larger_than_all_that_were_seen_grows_further(model: SizeModel) -> None:
    x = np.array([[90.0, 30, 30, 60], [900.0, 300, 300, 600]])
    small, large = model.predict(COUNTS, x)
    assert 5 * small < large < 20 * small


def test_counts_are_found_by_name(model: SizeModel) -> None:
    x, _ = functions(20)
    order = [3, 0, 2, 1]
    shuffled = (*(COUNTS[i] for i in order), "another")
    values = np.concatenate([x[:, order], np.ones((20, 1))], axis=1)
    assert (model.predict(shuffled, values) == model.predict(COUNTS, x)).all()
    with pytest.raises(SizeModelError, match="lacks the counts calls"):
        model.predict(("instructions", "opcode_call", "opcode_load"), x[:, [0, 2, 3]])


def test_a_file_holds_the_model(model: SizeModel, tmp_path: Path) -> None:
    path = tmp_path / "sizes.safetensors"
    save(model, path)
    again = load(path)
    x, _ = functions(50, seed=2)
    assert (again.predict(COUNTS, x) == model.predict(COUNTS, x)).all()
    assert again.provenance == {"projects": ["one"]}
    before = path.read_bytes()
    save(again, path)
    assert path.read_bytes() == before


def test_the_fit_depends_on_its_seed_alone() -> None:
    x, y = functions(200)
    one, same, other = (fit(COUNTS, x, y, seed, QUICK) for seed in (0, 0, 1))
    assert (one.trees.value == same.trees.value).all()
    assert (
        one.trees.value.shape != other.trees.value.shape
        or (one.trees.value != other.trees.value).any()
    )


@settings(max_examples=150)
@given(where=st.floats(0, 1, exclude_max=True), part=st.binary(max_size=8))
def test_a_damaged_file_is_refused_or_read(
    where: float, part: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    x, y = functions(60)
    whole = tmp_path_factory.getbasetemp() / "whole"
    if not whole.exists():
        save(fit(COUNTS, x, y, settings=replace(QUICK, rounds=2)), whole)
    data = whole.read_bytes()
    place = int(where * len(data))
    damaged = whole.with_name("damaged")
    damaged.write_bytes(data[:place] + part + data[place + max(1, len(part)) :])
    try:
        assert len(load(damaged).predict(COUNTS, x)) == 60
    except SizeModelError as error:
        # A damaged name of a count is found when the count is.
        assert str(error).startswith(("Cannot use the size model", "The function log lacks"))


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"nonsense" * 100])
def test_what_is_no_model_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SizeModelError):
        load(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ReadError, match="as a size model"):
            load(path)


LOG = [{"nestor_functions": 1, "module": "m", "counts": ["a", "b"]}, ["f", 1, 2], ["g", 3, 4],
       {"functions": 2}]  # fmt: skip


def lines(*parts: object) -> bytes:
    return "".join(json.dumps(part) + "\n" for part in parts).encode()


def test_a_function_log_is_read() -> None:
    log = parse(lines(*LOG))
    assert log == FunctionLog(("a", "b"), ("f", "g"), log.values)
    assert log.values.tolist() == [[1, 2], [3, 4]]
    none = parse(lines(LOG[0], {"functions": 0}))
    assert none.names == () and none.values.shape == (0, 2)


@pytest.mark.parametrize(
    "parts",
    [
        LOG[:-1],
        LOG[1:],
        [*LOG[:2], LOG[3]],
        [LOG[0], ["f", 1], {"functions": 1}],
        [LOG[0], ["f", 1, "x"], {"functions": 1}],
        [LOG[0], [7, 1, 2], {"functions": 1}],
        [LOG[0], 5, {"functions": 1}],
        [{**LOG[0], "nestor_functions": 2}, *LOG[1:]],  # type: ignore[dict-item]
        [{**LOG[0], "counts": ["a", "a"]}, *LOG[1:]],  # type: ignore[dict-item]
        [],
    ],
)
def test_another_function_log_is_refused(parts: list[object]) -> None:
    with pytest.raises(LogError, match="no complete function log"):
        parse(lines(*parts))
