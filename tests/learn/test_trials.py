"""Trials: kept on disk as they were, and never mistaken for another run's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.learn.distil.trials import Trials, TrialsError, join, read, write


def some_trials(program: str = "a/one", rows: int = 5, seed: int = 0) -> Trials:
    rng = np.random.default_rng(seed)
    return Trials(
        features=("cost", "uses"),
        programs=(program,),
        score=np.array([50_000.0]),
        x=rng.integers(-5, 500, (rows, 2)).astype(float),
        gain=rng.integers(-50, 50, (rows, 2)).astype(float),
        modes=("gc", "no-gc"),
        sharing=np.ones(rows),
        default=rng.integers(0, 2, rows).astype(float),
        program=np.zeros(rows, dtype=np.int64),
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trials"
    trials = some_trials()
    write(trials, path)
    again = read(path)
    assert again is not None
    assert (again.x == trials.x).all()
    assert (again.gain == trials.gain).all()
    assert (again.features, again.programs, again.modes) == (
        trials.features,
        trials.programs,
        trials.modes,
    )


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "absent") is None


@pytest.mark.parametrize("keep", [0, 7, 60, 200])
def test_a_cut_file_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "trials"
    write(some_trials(), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(TrialsError, match="holds no trials"):
        read(path)


def test_joined_rows_know_their_project() -> None:
    joined = join([some_trials("a/one"), some_trials("b/x", 3), some_trials("a/two", 2)])
    assert joined.programs == ("a/one", "b/x", "a/two")
    assert joined.projects().tolist() == [0] * 5 + [1] * 3 + [0] * 2
    assert len(joined) == 10


def test_what_does_not_belong_together_is_not_joined() -> None:
    with pytest.raises(TrialsError, match="no search tried anything"):
        join([])
    other = replace(some_trials(), modes=("gc", "icf"))
    with pytest.raises(TrialsError, match="differ"):
        join([some_trials(), other])
    with pytest.raises(TrialsError, match="lack the features node_count"):
        some_trials().columns(["cost", "node_count"])
