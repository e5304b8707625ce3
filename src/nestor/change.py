"""The change of a number in per cent, as every table and every result gives it."""

import math


def change_pct(before: float, after: float) -> float:
    """Return the change from ``before`` to ``after`` in per cent (negative is smaller).

    Nothing that stays nothing has not changed; what nothing becomes has grown without bound, which
    is infinity here, a dash in a table and null in JSON.
    """
    if before == 0:
        return 0.0 if after == 0 else math.inf
    return 100.0 * (after - before) / before


def change_text(change: float) -> str:
    """Return a change in per cent as text; a dash if it is no finite number."""
    return f"{change:+.2f} %" if math.isfinite(change) else "–"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return the two ends of an interval of changes in per cent.

    A dash if there is none, or an end is not finite.
    """
    low, high = interval or (math.nan, math.nan)
    return f"{low:+.2f} … {high:+.2f} %" if math.isfinite(low + high) else "–"
