"""Other values of what a form costs, one parameter at a time: the steps of the fit."""

from collections.abc import Callable, Iterator
from typing import Final

from nestor.cost.core.parameters import (
    ALU,
    DIVIDER,
    FLOAT,
    FLOAT_DIVIDER,
    FLOAT_STORE,
    PORT_CHOICES,
    FormParameters,
    ports,
)


def _around(value: int, small: range, least: int) -> list[int]:
    """Return other values near and far: a few small ones, steps, and factors."""
    near = {value + d for d in (-2, -1, 1, 2)} | {value * f // 10 for f in (5, 8, 9, 11, 13, 20)}
    return sorted(v for v in near | set(small) if v >= least and v != value)


def _latencies(row: FormParameters) -> Iterator[FormParameters]:
    for value in _around(row.latency, range(5), 0):
        yield row._replace(latency=value)


def _slots(row: FormParameters) -> Iterator[FormParameters]:
    for value in _around(row.slots, range(1, 3), 1):
        yield row._replace(slots=value)


def _first_ports(row: FormParameters) -> Iterator[FormParameters]:
    for mask in _other_ports(row.ports):
        yield row._replace(ports=mask, executions=max(row.executions, 1))
    for count in _around(row.executions, range(3), 0):
        yield row._replace(ports=(row.ports or ALU) if count else 0, executions=count)


def _busy(row: FormParameters) -> Iterator[FormParameters]:
    if row.executions:
        for value in _around(row.busy, range(1, 4), 1):
            yield row._replace(busy=min(value, 500))


def _second_ports(row: FormParameters) -> Iterator[FormParameters]:
    if row.executions:
        for mask in _SECOND:
            if mask != row.second_ports:
                yield row._replace(
                    second_ports=mask, second_executions=max(row.second_executions, 1)
                )
    if row.second_executions:
        for count in _around(row.second_executions, range(3), 0):
            mask = row.second_ports if count else 0
            yield row._replace(second_ports=mask, second_executions=count)


def _load_extra(row: FormParameters) -> Iterator[FormParameters]:
    for value in range(row.load_extra - 2, row.load_extra + 3):
        if -3 <= value <= 12 and value != row.load_extra:
            yield row._replace(load_extra=value)


def _other_ports(mask: int) -> list[int]:
    """Return other sets of ports on the same side of the core, or of both if there is none yet."""
    if mask & (FLOAT | FLOAT_STORE | FLOAT_DIVIDER):
        sides = FLOAT | FLOAT_STORE | FLOAT_DIVIDER
    elif mask:
        sides = ALU | DIVIDER
    else:
        sides = ALU | FLOAT | FLOAT_STORE
    return [choice for choice in PORT_CHOICES if choice != mask and not choice & ~sides]


_SECOND: Final = (
    ports(0),
    ports(0, 1, 2),
    ALU,
    ports(16),
    FLOAT_STORE,
    ports(12, 13),
    ports(13, 14),
    FLOAT,
)

Alternatives = Callable[[FormParameters], Iterator[FormParameters]]

ALTERNATIVES: Final[tuple[Alternatives, ...]] = (
    _latencies,
    _slots,
    _first_ports,
    _busy,
    _second_ports,
    _load_extra,
)
"""Other values of one parameter of a form each, in the order in which they are tried."""
