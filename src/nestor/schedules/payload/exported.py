"""What exporters write that no schedule should have to know.

- ``dense_resource``: the values of a constant stand at the end of the file, from where MLIR's own
  printer in generic form loses them; here they become part of the constant.
- Sizes of one, indexed by the constant 0 (``(d0, d1) -> (d0, 0)``), as torch-mlir and IREE write
  means and sums of rows: mlir-opt folds them away.
"""

import re
from typing import Final

from nestor.schedules.language.text import ScheduleError

FOLDING: Final = ("--linalg-fold-unit-extent-dims", "--canonicalize")
"""The passes of mlir-opt that remove dimensions of size one."""

_UNIT: Final = re.compile(r"affine_map<\([^()]*\) -> \((?:[^()]*,)?\s*0\s*(?:,[^()]*)?\)>")
_RESOURCE: Final = re.compile(r'dense_resource<(?:"([^"]*)"|([\w.$-]+))> : (tensor<[\dx]*(\w+)>)')
_BLOB: Final = re.compile(r'(?:"([^"\s]+)"|([\w.$-]+)): "0x([0-9A-Fa-f]*)"')
_ALIGNMENT: Final = 8
"""Hexadecimal digits of the number before the values, which says how they are aligned."""


def has_unit_dimensions(text: str) -> bool:
    """Return whether an operation indexes a dimension of size one by a constant."""
    return _UNIT.search(text) is not None


def with_constants(generic: str, source: str) -> str:
    """Return a module in which each constant has its values in itself.

    :param generic: the module in generic form, one without its resources.
    :param source: the text that it was read from.
    :raises ScheduleError: if the values of a constant are missing.
    """
    if "dense_resource<" not in generic:
        return generic
    _, _, resources = source.rpartition("{-#")
    values = {m[1] or m[2]: m[3][_ALIGNMENT:] for m in _BLOB.finditer(resources)}

    def constant(match: re.Match[str]) -> str:
        key = match[1] or match[2]
        if not values.get(key) or match[4] == "i1":
            raise ScheduleError(
                f"The constant '{key}' of the payload has no values that can be read: export it"
                " without eliding constants, and without constants of booleans."
            )
        return f'dense<"0x{values[key]}"> : {match[3]}'

    return _RESOURCE.sub(constant, generic)
