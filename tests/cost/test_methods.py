"""Labels of two methods are never mixed silently."""

import numpy as np
import pytest

from nestor.cost.blocks.methods import methods_of, require_one_method
from nestor.cost.blocks.table import Table, TableError
from nestor.cost.measure.harness import HarnessSettings
from nestor.cost.trainers import train

ADD, MULTIPLY = bytes.fromhex("4801c9"), bytes.fromhex("480fafc9")


def labelled(machines: tuple[str, ...], backends: tuple[str, ...]) -> Table:
    return Table(
        (ADD, MULTIPLY),
        np.array([1.0, 3.0]),
        np.array([0.0, 0.0]),
        machine=machines,
        backend=backends,
    )


def test_one_machine_by_two_methods_is_refused_before_any_training() -> None:
    mixed = labelled(("A", "A"), ("rdtsc", "rdtsc-fenced"))
    with pytest.raises(TableError, match="'A' were measured by rdtsc and rdtsc-fenced"):
        train("bound", mixed, np.arange(2))


def test_rows_that_do_not_train_do_not_count() -> None:
    mixed = labelled(("A", "A"), ("rdtsc", "rdtsc-fenced"))
    require_one_method(mixed.select(np.array([1])))


def test_each_machine_has_a_method_of_its_own() -> None:
    table = labelled(("A", "B"), ("rdtsc", "rdtsc-fenced"))
    require_one_method(table)
    assert methods_of(table) == {"A": ("rdtsc",), "B": ("rdtsc-fenced",)}


def test_rows_that_name_no_method_say_nothing() -> None:
    require_one_method(labelled(("A", "A"), ("", "rdtsc")))


def test_the_steady_state_is_the_default() -> None:
    assert "-f" in HarnessSettings().options()
    assert "-f" not in HarnessSettings(overlapping=True).options()
