"""Predict the cycles of basic blocks."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nestor.cost.contract import Prediction
from nestor.cost.isa.decoding import DecodeError
from nestor.cost.isa.refusals import refusal
from nestor.cost.predict.answers import answers
from nestor.cost.registry import open_model
from nestor.cost.sources.inputs import InputError, block_of


def predict_cycles(
    blocks: Sequence[bytes | str],
    model: str | os.PathLike[str] = "shipped",
    machine: str | None = None,
) -> Prediction:
    """Predict the core cycles of one pass through each block when it runs over and over.

    :param blocks: x86-64 machine code without the jump that ends it: bytes, or hexadecimal.
    :param model: ``shipped``, ``llvm-mca``, ``bound``, or a file of ``nestor costmodel train``.
    :param machine: the machine to predict for, of those in the model; None is its first.
    :return: cycles with the ends of an interval, ``[blocks]`` each; NaN where there is no answer,
        and ``refused`` says why, by the block's number.
    :raises NestorError: if there is no such model, or a text is not hexadecimal.
    """
    if isinstance(blocks, bytes | str):
        raise InputError("Blocks are given as a list: write [block] for one.")
    code = [block_of(block) if isinstance(block, str) else block for block in blocks]
    predicted = answers(open_model(os.fspath(model), machine), code)
    silent = np.flatnonzero(np.isnan(predicted.cycles)).tolist()
    reasons = {row: _reason(code[row]) for row in silent if row not in predicted.refused}
    return replace(predicted, refused={**predicted.refused, **reasons})


def _reason(block: bytes) -> str:
    """Return why a block has no answer of which the model does not say it."""
    if not block:
        return "it has no instruction"
    try:
        return refusal(block) or "the model has no answer for it"
    except DecodeError:
        return "it cannot be decoded as x86-64 code"
