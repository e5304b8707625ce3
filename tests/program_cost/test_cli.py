"""The commands from events to predicted cycles."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nestor.cost.model.model_file import load_models, save
from nestor.events.table import edges_path, read, write
from tests.command import nestor
from tests.cost.abilities import needs_valgrind
from tests.events.conftest import Compile

pytestmark = needs_valgrind

MODEL = ("--model", "bound", "--penalties", "AMD Zen 4")


@pytest.fixture(scope="session")
def runs(compiled: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the events of two builds of a program."""
    folder = tmp_path_factory.mktemp("runs")
    for name, options in (("fast", ("-static", "-O2")), ("slow", ("-static", "-O0"))):
        program = compiled("branches", *options)
        done = nestor("events", str(program), "--out", str(folder / f"{name}.parquet"), "--json")
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.json").write_text(done.stdout)
    return folder


def test_events(runs: Path) -> None:
    found = json.loads((runs / "fast.json").read_text())
    assert found["about"]["source"] == "simulated"
    assert found["totals"]["instructions"] > 1e6
    assert found["functions"][0]["events"]["mispredicts"] is not None
    assert (runs / "fast.edges.parquet").exists()


def test_cycles_of_a_run_and_of_two_builds(runs: Path) -> None:
    words = ("costmodel", "program", str(runs / "fast.parquet"), *MODEL)
    done = nestor(*words, "--against", str(runs / "slow.parquet"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["against"]["verdict"] == "faster"
    assert found["against"]["ratio"] < 0.9
    shares = sum(one["cycles"] for one in found["functions"])
    assert 0.8 < shares / found["estimate"]["cycles"] <= 1.001
    bound = {one["function"]: one["bound"] for one in found["functions"]}
    assert bound["at_random"] == "mispredict"
    predicted = nestor(*words, "--predict-mispredictions", "--json")
    assert predicted.returncode == 0, predicted.stderr
    parts = [one["estimate"]["by_quantity"] for one in (found, json.loads(predicted.stdout))]
    assert parts[0]["mispredict"] != parts[1]["mispredict"] > 0
    assert parts[0]["compute"] == parts[1]["compute"]
    text = nestor(*words, "--by-block", "--top", "3")
    assert text.returncode == 0
    assert "mispredicted branches" in text.stdout


def test_misses_are_predicted_where_they_are_not_counted(runs: Path, tmp_path: Path) -> None:
    table = read(runs / "fast.parquet")
    blocks = table.blocks
    for name in ("l1_misses", "l2_misses", "llc_misses"):
        nothing = pa.nulls(len(table), pa.int64())
        blocks = blocks.set_column(blocks.column_names.index(name), name, nothing)
    write(replace(table, blocks=blocks), tmp_path / "profile.parquet")
    found = {}
    for place in (runs / "fast.parquet", tmp_path / "profile.parquet"):
        words = ("costmodel", "program", str(place), *MODEL, "--predict-misses", "--json")
        done = nestor(*words)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        found[place.name] = json.loads(done.stdout)
    assert found["fast.parquet"]["estimate"] == found["profile.parquet"]["estimate"]
    assert found["profile.parquet"]["uncounted"] == []
    assert found["profile.parquet"]["estimate"]["low"] is None, (
        "no error of predicted events is kept"
    )
    quantities = found["profile.parquet"]["estimate"]["by_quantity"]
    assert quantities["l1"] > 0
    assert quantities["tlb"] == quantities["code"] == 0
    text = nestor("costmodel", "program", str(runs / "fast.parquet"), *MODEL, "--predict-misses")
    assert "larger than that of counted ones" in " ".join(text.stdout.split())
    counted = nestor("costmodel", "program", str(tmp_path / "profile.parquet"), *MODEL)
    assert "first-level misses" in counted.stderr


def test_blocks_are_priced_for_the_machine_of_the_penalties(runs: Path, tmp_path: Path) -> None:
    words = ("costmodel", "program", str(runs / "fast.parquet"), "--penalties")
    (model,) = load_models("shipped", "AMD Zen 4")
    save(model, only_zen4 := tmp_path / "zen4.safetensors")
    found = json.loads(nestor(*words, "AMD Zen 4", "--json").stdout)
    alone = json.loads(nestor(*words, "AMD Zen 4", "--model", str(only_zen4), "--json").stdout)
    assert (found["blocks_machine"], found["penalties"]) == ("AMD Zen 4", "AMD Zen 4")
    assert found["estimate"] == alone["estimate"]
    other = nestor(*words, "AMD Zen 4", "--machine", "Intel Redwood Cove")
    assert "blocks as Intel Redwood Cove has them" in " ".join(other.stdout.split())
    assert other.stderr == "", "who names a machine knows it"
    without = nestor(*words, "Intel Redwood Cove", "--model", str(only_zen4))
    assert without.returncode == 0
    assert "has no model of Intel Redwood Cove, so blocks are priced as on AMD Zen 4" in " ".join(
        without.stderr.split()
    )


def test_what_does_not_fit_is_said(runs: Path, tmp_path: Path) -> None:
    done = nestor("costmodel", "program", str(tmp_path / "absent.parquet"), *MODEL)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    few = tmp_path / "few.parquet"
    table = read(runs / "fast.parquet")
    empty = pa.nulls(len(table), pa.int64())
    for name in ("mispredicts", "tlb_misses"):
        at = table.blocks.column_names.index(name)
        table = replace(table, blocks=table.blocks.set_column(at, name, empty))
    write(replace(table, about=replace(table.about, program="other")), few)
    priced = ("costmodel", "program", str(runs / "fast.parquet"), *MODEL)
    done = nestor(*priced, "--against", str(few), "--json")
    assert "runs of 'branches-static-O2' and of 'other'" in " ".join(done.stderr.split())
    done = nestor("costmodel", "program", str(few), *MODEL, "--json")
    said = " ".join(done.stderr.split())
    assert "does not count mispredicted branches, page walks: they cost nothing here" in said
    assert json.loads(done.stdout)["uncounted"] == ["mispredict", "tlb"]
    done = nestor(*priced, "--machine", "AMD Zen 5")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "leave out --machine" in done.stderr
    few.unlink()
    edges_path(few).unlink()

    (tmp_path / "runs.csv").write_text("program,events,cycles\na,absent.parquet,12\n")
    out = tmp_path / "weights.json"
    words = ("costmodel", "fit-program", str(tmp_path / "runs.csv"), "--out", str(out), *MODEL)
    done = nestor(*words)
    assert (done.returncode, done.stderr.count("\n"), out.exists()) == (1, 1, False)
    lines = "".join(f"{name},{runs / name}.parquet,1e7\n" for name in ("fast", "slow"))
    (tmp_path / "runs.csv").write_text("program,events,cycles\n" + lines)
    done = nestor(*words)
    assert "three or more" in done.stderr
    third = f"third,{runs / 'fast'}.parquet,9e6\n"
    (tmp_path / "runs.csv").write_text("program,events,cycles\n" + lines + third)
    done = nestor(*words)
    assert done.returncode == 0, done.stderr
    again = nestor(
        "costmodel", "program", str(runs / "fast.parquet"), *MODEL, "--weights", str(out), "--json"
    )
    assert json.loads(again.stdout)["weights"]["fitted"]


def test_wrong_words_are_one_sentence(compiled: Compile, tmp_path: Path) -> None:
    program = str(compiled("branches"))
    for words in (
        ("events", str(tmp_path / "absent")),
        ("events", program, "--callgrind", "a", "--perf", "b"),
        ("events", program, "--perf", str(tmp_path / "absent")),
        ("events", program, "--out", str(tmp_path / "run.txt")),
        ("events", "/usr/bin/ldd"),  # a script
        ("costmodel", "cycles", str(tmp_path / "absent")),
        ("costmodel", "cycles", program, "--core", "9999"),
        ("costmodel", "penalties", "--core", "9999"),
    ):
        done = nestor(*words)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "try again" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_that_fails_says_so() -> None:
    done = nestor("costmodel", "cycles", "/bin/false", "--rounds", "1", "--json")
    assert done.returncode == 0
    assert done.stderr.endswith("nestor: the program ended with status 1\n")
