"""Read the code that a command line names, the same way for every command."""

import math
import sys
from typing import TYPE_CHECKING, Any

from nestor.cli.remarks import remark

if TYPE_CHECKING:
    from nestor.cost.model.hybrid import HybridModel
    from nestor.cost.model.mean import OwnModel
    from nestor.cost.registry import Target
    from nestor.cost.sources.inputs import Code


def read_code(words: tuple[str, ...], assembly: str | None, intel: bool) -> "Code":
    """Return the code that the command line names, or that of standard input."""
    from nestor.cost.contract import ModelError
    from nestor.cost.sources import inputs

    if assembly is not None:
        if words:
            raise ModelError("Give either --assembly or code, not both.")
        return inputs.Code(functions=inputs.from_assembly(assembly, "--assembly", intel=intel))
    if words:
        return inputs.read(words, intel=intel)
    data = sys.stdin.buffer.read(inputs.LARGEST_TEXT + 1)
    if len(data) > inputs.LARGEST_TEXT:
        raise ModelError("Standard input is larger than any text of blocks; make a table of it.")
    blocks = inputs.from_lines(data.decode(errors="replace"), "standard input")
    if not blocks:
        raise ModelError("There is no code on standard input; name blocks or files.")
    return inputs.Code(blocks)


def open_explainable(model: str, machine: str | None) -> "HybridModel":
    """Return the model that a command line names, of the kind that says how it comes to its answer.

    Of the mean of several fits it is the first, which a remark says.

    :raises ModelError: if it is of another kind.
    """
    from nestor.cost.model.mean import MeanModel

    opened = open_own(model, machine)
    if not isinstance(opened, MeanModel):
        return opened
    remark(f"the answers of '{model}' are the mean of {len(opened.models)} fits; this is the first")
    return opened.models[0]


def open_own(model: str, machine: str | None) -> "OwnModel":
    """Return the model that a command line names, of our own kind.

    :raises ModelError: if it is of another kind.
    """
    from nestor.cost.contract import ModelError
    from nestor.cost.model.mean import OwnModel
    from nestor.cost.registry import open_model

    opened = open_model(model, machine)
    if not isinstance(opened, OwnModel):
        raise ModelError(
            f"Only our own kind of model can be explained or adapted, and '{model}' is another;"
            " name 'shipped' or a file of 'nestor costmodel train'."
        )
    return opened


def about(target: "Target") -> str:
    """Return in words what a model predicts; empty if it does not say."""
    words = [target.machine and f"cycles on {target.machine}"]
    words += [target.method and f"as the labels of '{target.method}' measure them"]
    return ", ".join(filter(None, words))


def about_json(target: "Target") -> dict[str, Any]:
    """Return the same for programs."""
    return {"machine": target.machine or None, "label_method": target.method or None}


def interval(low: float, high: float) -> str:
    """Return an interval in words."""
    return f"{low:,.2f} … {high:,.2f}" if math.isfinite(low) and math.isfinite(high) else "unknown"
