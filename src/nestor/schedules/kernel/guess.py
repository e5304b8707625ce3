"""A first choice for each decision, computed from sizes, caches and registers, not measured."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from nestor.schedules.language.decisions import Choice, Decision
from nestor.schedules.payload.loops import Loops
from nestor.schedules.target import Target


def guess(
    decisions: Sequence[Decision], loops: Loops, target: Target, fixed: Choice | None = None
) -> dict[str, int]:
    """Return an answer to every decision.

    What a schedule selects itself stands, unless ``fixed`` says otherwise. A decision of a name
    that is not among those of the packaged pipelines gets its middle option.

    :param fixed: answers that stand; the others are made for them.
    """
    found = dict(fixed or {})
    left = [d for d in decisions if d.name not in found]
    ordered = sorted(left, key=lambda d: _ORDER.index(d.name) if d.name in _ORDER else 99)
    for decision in ordered:
        if decision.selected is not None:
            found[decision.name] = decision.selected
        elif decision.name in _GUESSES and decision.kind == _KINDS.get(decision.name, "knob"):
            found[decision.name] = _GUESSES[decision.name](decision.options, loops, target, found)
        elif decision.kind == "alternatives" and decision.name == "lanes":
            found["lanes"] = decision.options[min(1, len(decision.options) - 1)]
        else:
            found[decision.name] = decision.options[len(decision.options) // 2]
    return found


SHARED: Final = 8
"""Tiles that threads should have to share: two for each of four."""

_Guess = Callable[[Sequence[int], Loops, Target, Choice], int]


def _reg_n(options: Sequence[int], loops: Loops, target: Target, _: Choice) -> int:
    """Several vectors of columns: with fewer, loads of the other operand limit the speed."""
    lanes = target.lanes(loops.bits)
    # A column that is a row in memory is gathered: few of them, for many rows.
    most = 2 if _windows(loops) or loops.transposed or target.registers < 32 else 4
    if loops.m == 1:
        most = target.registers  # one row has no other accumulators, and long rows suit prefetchers
    fitting = [o for o in options if o % lanes == 0 and o <= most * lanes] or [min(options)]

    def padding(columns: int) -> float:
        return math.ceil(loops.n / columns) * columns / loops.n - 1.0

    return min(fitting, key=lambda o: (padding(o) // 0.05, -o))


def _reg_m(options: Sequence[int], loops: Loops, target: Target, choice: Choice) -> int:
    """As many rows as registers hold accumulators; rather fewer than a part of a kernel left."""
    vectors = max(1, choice.get("reg_n", 1) // target.lanes(loops.bits))
    # A convolution holds its window and its part of the input in registers as well.
    room = {"depthwise": target.registers // 3, "conv": target.registers // 2}.get(
        loops.kind, target.registers - vectors - 2
    )
    fitting = [o for o in options if o * vectors <= room and o <= loops.m] or [min(options)]

    def cost(rows: int) -> float:
        left = (math.ceil(loops.m / rows) * rows - loops.m) / loops.m
        # Each step of the kernel loads ``rows + vectors`` for ``rows * vectors`` multiply-adds.
        return (1.0 + left) * (1.0 + 0.6 * (rows + vectors) / (rows * vectors))

    return min(fitting, key=cost)


def _panels(loops: Loops) -> bool:
    """Return whether the pipeline can cut columns into panels."""
    return loops.kind == "matmul"


def _windows(loops: Loops) -> bool:
    return loops.kind in ("conv", "depthwise")


def _reg_k(options: Sequence[int], loops: Loops, target: Target, _: Choice) -> int:
    """Some input channels at a time: more only make the code larger."""
    return min(options, key=lambda o: abs(o - 4))


def _tile_k(options: Sequence[int], loops: Loops, target: Target, choice: Choice) -> int:
    """All, or even parts of it whose packed columns fill a part of a cache.

    Panels come one after the other, from the second level of cache: a longer one has to be read
    more slowly, a shorter one reads and writes the result more often.
    """
    row = choice.get("reg_n", 16) * loops.bits // 8
    room = target.l1_bytes * 3 // 2 if _panels(loops) else target.l2_bytes // 4
    most = max([o for o in options if o * row <= room] or [min(options)])
    part = loops.k / math.ceil(loops.k / most)
    return min((o for o in options if o >= part), default=max(options))


def _tile_n(options: Sequence[int], loops: Loops, target: Target, choice: Choice) -> int:
    """Panels that stay in a cache while rows and results pass: few, and all rows pass more often.

    A third of the second level; of the third level, where that is larger, at most 1 MiB, since
    on some processors it is slow or shared by many.
    """
    if _panels(loops):
        row = min(choice.get("tile_k", 256), loops.k) * loops.bits // 8
        room = max(target.l2_bytes // 3, min(target.l3_bytes // 32, 1 << 20))
        fitting = [o for o in options if o * row <= room] or [min(options)]
        return min((o for o in fitting if o >= loops.n), default=max(fitting))
    return min((o for o in options if o >= choice.get("reg_n", 16)), default=max(options))


def _tile_m(options: Sequence[int], loops: Loops, target: Target, choice: Choice) -> int:
    """Rows that stay in the second level of cache, or near it, while all columns pass."""
    if _panels(loops):
        columns = math.ceil(loops.n / choice.get("tile_n", loops.n))
        even = [o for o in options if loops.m % o == 0 and loops.m // o * columns >= SHARED]
        if choice.get("parallel") and even:
            return max(even)
        return max(options)  # rows pass while columns stay
    row = min(choice.get("tile_k", 256), loops.k) * loops.bits // 8
    fitting = [o for o in options if o * row <= 2 * target.l2_bytes]
    return _even(fitting or [min(options)], loops.m, choice.get("reg_m", 8))


def _packing(options: Sequence[int], loops: Loops, _: Target, choice: Choice) -> int:
    """The right operand, where many rows use it and its columns are not one panel anyway."""
    if _panels(loops) and loops.n > choice.get("reg_n", 16):
        kernels = loops.m / choice.get("reg_m", 8)
        # Where tiles that threads share do not fit, their sizes are unknown: 6 does not take those.
        fits = loops.m % choice.get("tile_m", 1) == 0 and (
            loops.n % choice.get("tile_n", 1) == 0 or choice["tile_n"] >= loops.n
        )
        most = 6 if fits or not choice.get("parallel") else 4
        return most if kernels >= 8 else 4 if kernels >= 2 else 5
    if loops.transposed:
        return 0  # a packed operand has the order that it had
    return 1 if loops.m >= 96 and loops.n > choice.get("tile_n", 64) else 0


def _edge(options: Sequence[int], loops: Loops, _: Target, choice: Choice) -> int:
    """The least padding by which kernels at the edge have a power of two of columns."""
    unit = choice.get("reg_n", 16)

    def left(option: int) -> int:
        return math.ceil(loops.n % unit / option) * option

    whole = [o for o in options if (left(o) & (left(o) - 1)) == 0]
    return min(whole or options, key=left)


def _inner(options: Sequence[int], loops: Loops, _: Target, __: Choice) -> int:
    """Along the rows first."""
    return max(options)


def _even(options: Sequence[int], size: int, unit: int) -> int:
    """Return the option that pads least and then is the largest that is of use."""

    def padded(option: int) -> float:
        tile = min(option, size)
        whole, rest = divmod(size, tile)
        return (whole * math.ceil(tile / unit) + math.ceil(rest / unit)) * unit / size

    least = min(map(padded, options))
    good = [o for o in options if padded(o) <= 1.02 * least]
    useful = [o for o in good if o < 2 * size] or good
    return max(useful)


def _rows(options: Sequence[int], loops: Loops, target: Target, _: Choice) -> int:
    """Rows whose passes stay in the first level of cache."""
    length = loops.n * loops.bits // 8
    fitting = [o for o in options if o * length <= target.l1_bytes // 2 and loops.m % o == 0]
    return min(max(fitting, default=min(options)), 4)


def _lanes(options: Sequence[int], loops: Loops, target: Target, _: Choice) -> int:
    """Two vectors."""
    wanted = 2 * target.lanes(loops.bits)
    return min(options, key=lambda o: abs(o - wanted))


def _vectors(options: Sequence[int], loops: Loops, _: Target, __: Choice) -> int:
    """By MLIR where all operands are one long row, else by LLVM."""
    return max(options) if loops.flat else min(options)


_GUESSES: Final[dict[str, _Guess]] = {
    "reg_n": _reg_n,
    "reg_m": _reg_m,
    "tile_k": _tile_k,
    "tile_n": _tile_n,
    "tile_m": _tile_m,
    "packing": _packing,
    "edge": _edge,
    "inner": _inner,
    "reg_k": _reg_k,
    "rows": _rows,
    "lanes": _lanes,
    "vectors": _vectors,
}
_KINDS: Final = dict.fromkeys(("vectors", "packing", "inner"), "alternatives")
_ORDER: Final = tuple(_GUESSES)
