"""The choices of a schedule, and what a policy reads of one: rows of features."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.schedules.language.decisions import Decision
from nestor.schedules.payload.loops import Loops
from nestor.schedules.target import Target

KNOBS: Final = (
    "tile_m", "tile_n", "tile_k", "reg_m", "reg_n", "reg_k", "packing", "edge", "inner", "rows",
    "lanes", "vectors",
)  # fmt: skip
"""Decisions of the packaged pipelines, which policies know by name."""


def size(decisions: Sequence[Decision]) -> int:
    """Return how many choices there are."""
    return math.prod(len(d.options) for d in decisions)


def drawn(decisions: Sequence[Decision], random: np.random.Generator) -> dict[str, int]:
    """Return a choice, each option equally probable."""
    return {d.name: d.options[int(random.integers(len(d.options)))] for d in decisions}


def mutated(
    choice: Mapping[str, int], decisions: Sequence[Decision], random: np.random.Generator
) -> dict[str, int]:
    """Return a choice with one or two decisions moved, mostly to a neighbouring option."""
    changed = dict(choice)
    for _ in range(1 + int(random.integers(2))):
        decision = decisions[int(random.integers(len(decisions)))]
        options = decision.options
        if random.random() < 0.7:
            step = 1 if random.random() < 0.5 else -1
            at = options.index(changed[decision.name]) + step
            changed[decision.name] = options[min(max(at, 0), len(options) - 1)]
        else:
            changed[decision.name] = options[int(random.integers(len(options)))]
    return changed


def crossed(
    one: Mapping[str, int], other: Mapping[str, int], random: np.random.Generator
) -> dict[str, int]:
    """Return a choice that takes each decision from one of two."""
    return {name: (one if random.random() < 0.5 else other)[name] for name in one}


def row(choice: Mapping[str, int], loops: Loops, target: Target) -> dict[str, float]:
    """Return the features of one candidate.

    Sizes are in logarithms, and as parts of what they must fit in: so that a policy that has seen
    some shapes and caches can say something of others.
    """
    lanes = target.lanes(loops.bits)
    element = loops.bits / 8
    m, n, k = max(1, loops.m), max(1, loops.n), max(1, loops.k)
    reg_m, reg_n = _size(choice, "reg_m", 1), _size(choice, "reg_n", 1)
    tile_m, tile_n = min(_size(choice, "tile_m", m), m), min(_size(choice, "tile_n", n), n)
    tile_k = min(_size(choice, "tile_k", k), k)
    vectors = reg_m * math.ceil(reg_n / lanes)
    return (
        loops.features()
        | {
            "vector_bits": float(target.vector_bits),
            "registers": float(target.registers),
            "log2_l1": math.log2(target.l1_bytes),
            "log2_l2": math.log2(target.l2_bytes),
        }
        | {name: float(choice.get(name, -1)) for name in KNOBS}
        | {
            "accumulators": vectors / target.registers,
            "loads": (reg_m + math.ceil(reg_n / lanes)) / vectors,
            "part_of_vector": (reg_n % lanes) / lanes,
            "panel_in_l1": tile_k * (reg_n + reg_m) * element / target.l1_bytes,
            "block_in_l2": tile_k * (tile_n + tile_m) * element / target.l2_bytes,
            "padded_m": _padded(m, tile_m, reg_m),
            "padded_n": _padded(n, tile_n, reg_n),
            "padded_k": math.ceil(k / tile_k) * tile_k / k,
            "blocks_m": math.log2(math.ceil(m / tile_m)),
            "blocks_n": math.log2(math.ceil(n / tile_n)),
            "blocks_k": math.log2(math.ceil(k / tile_k)),
            "vectors": float(math.ceil(reg_n / lanes)),
            "left_m": (m % reg_m) / m,
            "left_n": float(-n % max(1, choice.get("edge", 1))) / n,
            # Rows of a matrix whose distance is a power of two share few lines of the cache.
            "stride_k": float(_zeros(int(k * element))),
            "stride_n": float(_zeros(int(n * element))),
            "left_in_l2": tile_m * tile_k * element / target.l2_bytes,
            "right_in_l2": tile_n * tile_k * element / target.l2_bytes,
            "right_in_l1": reg_n * tile_k * element / target.l1_bytes,
            # Operands copied to contiguous memory, by the regions of the decision "packing".
            "copied": (choice.get("packing", 0) in (1, 2, 3, 4, 6)) / tile_m
            + (choice.get("packing", 0) in (2, 3)) / tile_n,
            "panels": float(choice.get("packing", 0) > 2),
            "rows_left": float(m % max(1, choice.get("rows", 1)) > 0),
            "row_in_l1": n * max(1, choice.get("rows", 1)) * element / target.l1_bytes,
        }
    )


def _size(choice: Mapping[str, int], name: str, whole: int) -> int:
    """Return the size that a decision chooses; 0, as schedules write "untiled", is the whole."""
    size = choice.get(name, 0)
    return size if size > 0 else whole


def _zeros(number: int) -> int:
    """Return how many bits at the end of a number are zero, at most 12: those of a page."""
    return min(12, (number & -number).bit_length() - 1) if number else 12


def _padded(length: int, tile: int, unit: int) -> float:
    """Return how much longer a dimension gets when each tile is padded to the micro kernel."""
    whole, rest = divmod(length, tile)
    return (whole * math.ceil(tile / unit) + math.ceil(rest / unit)) * unit / length


def matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return rows of features as ``[rows, features]``, in the order of ``names``."""
    return np.array([[one[name] for name in names] for one in rows], np.float64)
