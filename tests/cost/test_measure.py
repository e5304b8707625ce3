"""From readings to labels, and labels to files: nothing here depends on how fast we are."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.cost.blocks import table
from nestor.cost.blocks.table import Table, TableError
from nestor.cost.measure import rows
from nestor.cost.measure.harness import Reading
from nestor.cost.measure.label import Measurement, label, quiet_strain, quiet_value, summary
from nestor.cost.measure.rows import Row
from nestor.cost.measure.screen import screen
from nestor.cost.measure.self_test import agreement, rounded, self_test
from nestor.cost.measure.session import BATCH, measure
from nestor.processor import name_of, this_machine
from nestor.progress import Progress, silent

QUIET = 1.6
cycles_of_rounds = st.lists(st.floats(0.1, 100), min_size=7, max_size=7)


def reading(cycles: Sequence[float], strain: Sequence[float] = (QUIET,) * 7) -> Reading:
    return Reading("ok", 0.7, tuple(cycles), tuple(strain), (0x12345000,))


# --- labels -----------------------------------------------------------------------------------


@given(st.lists(cycles_of_rounds, min_size=3, max_size=6))
def test_a_label_is_the_median_of_the_first_quiet_passes(passes: list[list[float]]) -> None:
    row = label(b"\x90", 1, [reading(rounds) for rounds in passes], QUIET, 3)
    values = [float(np.median(rounds)) for rounds in passes[:3]]
    assert row.cycles == pytest.approx(np.median(values))
    assert row.spread == pytest.approx((max(values) - min(values)) / np.median(values))
    assert row.status == ("ok" if row.spread < 0.05 else "unstable")
    assert (row.passes, row.pages) == (3, 1)
    assert row.calibration == pytest.approx(1 / 0.7)


@given(cycles_of_rounds, st.lists(st.booleans(), min_size=7, max_size=7))
def test_only_quiet_rounds_count_and_three_make_a_pass(
    cycles: list[float], quiet: list[bool]
) -> None:
    strain = [QUIET if is_quiet else 2.4 for is_quiet in quiet]
    kept = [value for value, is_quiet in zip(cycles, quiet, strict=True) if is_quiet]
    expected = float(np.median(kept)) if len(kept) >= 3 else None
    assert quiet_value(reading(cycles, strain), QUIET) == expected


def test_what_is_disturbed_throughout_is_marked_and_kept() -> None:
    noisy = reading([2.0] * 7, [2.4] * 7)
    row = label(b"\x90", 1, [noisy] * 4, QUIET, 3)
    assert (row.status, row.cycles, row.passes) == ("disturbed", 2.0, 0)
    assert math.isnan(row.spread)


def test_one_quiet_pass_is_not_enough_to_be_stable() -> None:
    row = label(b"\x90", 1, [reading([1.0] * 7), reading([3.0] * 7, [2.4] * 7)], QUIET, 3)
    assert (row.status, row.cycles, row.passes) == ("unstable", 1.0, 1)
    assert math.isnan(row.spread)


def test_a_block_that_fails_in_any_pass_has_no_label() -> None:
    failed = Reading("arithmetic fault", math.nan, (), (), ())
    row = label(b"\x90", 1, [reading([1.0] * 7), failed], QUIET, 3)
    assert row.status == "arithmetic fault"
    assert math.isnan(row.cycles)


@pytest.mark.parametrize("values", [[], [0.0], [-0.25, -0.25]])
def test_no_time_at_all_is_not_measurable(values: list[float]) -> None:
    row = summary(b"\x90", 1, values, 0)
    assert (row.status, math.isnan(row.cycles)) == ("not measurable", True)


@given(
    st.lists(st.floats(1.6, 1.604), min_size=30, max_size=60),
    st.lists(st.floats(1.8, 4.0), max_size=1000),
    st.lists(st.sampled_from([-0.6, 0.4, 1.2]), max_size=1),
    st.randoms(use_true_random=False),
)
def test_the_quiet_strain_is_the_smallest_that_others_confirm(
    quiet: list[float], shared: list[float], wrong: list[float], order: object
) -> None:
    strains = quiet + shared + wrong
    order.shuffle(strains)  # type: ignore[attr-defined]
    assert 1.6 <= quiet_strain(strains) <= 1.604


# --- what is not run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "status", "count"),
    [
        ("4801c990", "", 2),
        ("06", "undecodable", 0),
        ("90480f", "undecodable", 1),
        ("90ebfe", "control flow", 2),
        ("0f05", "control flow", 1),
        ("c3", "control flow", 1),
        ("0f0b", "", 1),
        ("f390", "", 1),
    ],
)
def test_screening(code: str, status: str, count: int) -> None:
    assert screen(bytes.fromhex(code)) == (status, count)


# --- the machine's name -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", "26", "2", "AMD Zen 5"),
        ("AuthenticAMD", "25", "17", "AMD Zen 4"),
        ("AuthenticAMD", "25", "1", "AMD Zen 3"),
        ("AuthenticAMD", "23", "49", "AMD Zen 2"),
        ("GenuineIntel", "6", "143", "Intel Sapphire Rapids"),
        ("GenuineIntel", "6", "255", "Brand"),
        ("AuthenticAMD", "99", "1", "Brand"),
        ("AuthenticAMD", "?", "1", "Brand"),
    ],
)
def test_a_machine_goes_by_its_micro_architecture(
    vendor: str, family: str, model: str, name: str
) -> None:
    facts = {"vendor_id": vendor, "cpu family": family, "model": model, "model name": "Brand"}
    assert name_of(facts) == name


def test_a_machine_that_says_nothing_is_unknown(tmp_path: Path) -> None:
    assert this_machine(tmp_path / "none") == "unknown"
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: One\n\nmodel name\t: Two\n")
    assert this_machine(tmp_path / "cpuinfo") == "One"


# --- files ------------------------------------------------------------------------------------

measurements = st.builds(
    Measurement,
    block=st.binary(min_size=1, max_size=20),
    status=st.sampled_from(["ok", "unstable", "timeout"]),
    cycles=st.floats(0.01, 1e4) | st.just(math.nan),
    spread=st.floats(0, 2) | st.just(math.nan),
    passes=st.integers(0, 10),
    pages=st.integers(0, 256),
    instructions=st.integers(0, 4096),
    calibration=st.floats(0.1, 10) | st.just(math.nan),
)


@settings(max_examples=30)
@given(st.lists(measurements, max_size=8))
def test_rows_are_read_back_and_are_a_table(
    tmp_path_factory: pytest.TempPathFactory, found: list[Measurement]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    written = [Row(one, "rdtsc", "AMD Zen 4") for one in found]
    rows.write(written, path)
    again = rows.read(path)
    assert [repr(row) for row in again] == [repr(row) for row in written]  # NaN is not itself
    as_table = table.read(path)
    assert as_table.blocks == tuple(one.block for one in found)
    assert as_table.machine == ("AMD Zen 4",) * len(found)
    np.testing.assert_array_equal(as_table.cycles, [one.cycles for one in found])


def test_other_files_are_not_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"block_hex": ["90"], "cycles": [1.0]}), path)
    with pytest.raises(TableError, match="name another file"):
        rows.read(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(TableError, match="name another file"):
        rows.read(path)


# --- sessions ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Counting:
    """A back end that says how long a block is, and notes what it was measured_blocks."""

    name: str = "counting"
    measured_blocks: list[bytes] = dataclasses.field(default_factory=list)
    stop_after: int = 1 << 30

    def measure(self, blocks: Sequence[bytes], progress: Progress) -> list[Measurement]:
        if len(self.measured_blocks) >= self.stop_after:
            raise KeyboardInterrupt
        self.measured_blocks += blocks
        return [
            Measurement(block, "unstable" if len(block) > 250 else "ok", float(len(block)), 0.0, 3)
            for block in blocks
        ]


def some(count: int) -> list[bytes]:
    return [bytes([90 + i % 100]) * (1 + i // 2) for i in range(count)]


def test_a_stopped_session_goes_on_where_it_was(tmp_path: Path) -> None:
    blocks, out = some(3 * BATCH), tmp_path / "out.parquet"
    first = Counting(stop_after=BATCH)
    with pytest.raises(KeyboardInterrupt):
        measure(blocks, first, "M", out)
    assert len(rows.read(out)) == len(first.measured_blocks) == BATCH
    second = Counting()
    found = measure(blocks, second, "M", out)
    assert second.measured_blocks == blocks[BATCH:]
    assert [row.measurement.block for row in found] == blocks
    third = Counting()
    assert [repr(row) for row in measure(blocks, third, "M", out)] == [repr(r) for r in found]
    assert third.measured_blocks == []


def test_each_block_once_and_other_machines_stay(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    backend = Counting()
    assert len(measure([b"a", b"b", b"a"], backend, "M", out)) == 2
    assert backend.measured_blocks == [b"a", b"b"]
    measure([b"a"], backend, "N", out)
    measure([b"a"], Counting("other"), "M", out)
    assert [(row.machine, row.backend) for row in rows.read(out)] == [
        ("M", "counting"),
        ("M", "counting"),
        ("N", "counting"),
        ("M", "other"),
    ]


def test_again_measures_only_what_was_not_stable(tmp_path: Path) -> None:
    out, backend = tmp_path / "out.parquet", Counting()
    blocks = [b"a", b"b" * 300]
    measure(blocks, backend, "M", out)
    found = measure(blocks, backend, "M", out, again=True)
    assert backend.measured_blocks == [*blocks, blocks[1]]
    assert [row.measurement.block for row in found] == blocks
    assert len(rows.read(out)) == 2


def test_a_table_without_blocks_is_a_file_without_rows(tmp_path: Path) -> None:
    assert measure([], Counting(), "M", tmp_path / "out.parquet") == []
    assert rows.read(tmp_path / "out.parquet") == []


# --- the self-test ----------------------------------------------------------------------------


def test_agreement_counts_what_it_says() -> None:
    one, two = np.array([1.0, 1.1, 5.0, 9.0]), np.array([1.0, 1.0, 5.0, 1.0])
    found = agreement(one, two, np.array([True, True, True, False]))
    assert (found.n, found.median) == (3, 0.0)
    assert found.mean == pytest.approx(10 / 3)
    assert found.above_5 == pytest.approx(100 / 3)
    assert found.ratio == pytest.approx(1.1 ** (1 / 3))
    assert agreement(one, two, np.zeros(4, dtype=bool)).n == 0


def test_a_self_test_draws_stable_blocks_and_compares() -> None:
    blocks = some(300)
    lengths = np.array([len(block) for block in blocks], dtype=np.float64)
    spread = np.where(np.arange(300) % 3 == 0, 0.2, 0.01)
    given_table = Table(tuple(blocks), lengths * 1.1, spread, ("AMD Zen 5",) * 300)
    backend = Counting()
    found = self_test(given_table, backend, "M", sample=120, seed=4, progress=silent)
    assert sorted(backend.measured_blocks[:100]) == sorted(backend.measured_blocks[100:200]), (
        "in turns"
    )
    assert len(backend.measured_blocks) == 240
    assert {blocks.index(block) % 3 for block in backend.measured_blocks} == {1, 2}
    assert (found.stable, found.repeated.mean) == (100.0, 0.0)
    assert found.against_table.mean == pytest.approx(100 / 11)
    assert found.against_table.ratio == pytest.approx(1 / 1.1)
    assert found.statuses["first"] == {"ok": 120}
    assert (found.machine, found.table_machine) == ("M", "AMD Zen 5")
    assert rounded(found)["sample"] == 120
    again = self_test(given_table, backend, "M", sample=120, seed=4)
    assert again == found
