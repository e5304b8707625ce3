"""What forms of instructions blocks consist of."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from nestor.cost.core.simulator import I64, Simulator
from nestor.cost.isa.decoding import decode
from nestor.cost.isa.template_layout import VARIANTS


@dataclass(frozen=True)
class BlockForms:
    """The forms of blocks; one that cannot be decoded has none."""

    names: tuple[frozenset[str], ...]
    """Each form of a block once ``[n]``."""
    keys: tuple[Hashable, ...]
    """Equal for blocks with the same sequence of forms ``[n]``."""
    lengths: I64
    """Instructions ``[n]``."""


def forms_of(blocks: Sequence[bytes], by_mnemonic: bool = False) -> BlockForms:
    """Return the forms of ``blocks``.

    :param by_mnemonic: call forms by their mnemonics alone.
    """
    simulator = Simulator()
    decodable = simulator.keep(blocks)
    all_names = simulator.templates.forms
    names, keys, lengths = [], [], np.zeros(len(blocks), dtype=np.int64)
    for number in range(len(blocks)):
        forms = simulator.forms(number) // VARIANTS if decodable[number] else np.zeros(0, np.int32)
        if by_mnemonic and decodable[number]:
            names.append(frozenset(one.mnemonic for one in decode(blocks[number])))
        else:
            names.append(frozenset(all_names[form] for form in forms.tolist()))
        keys.append(forms.tobytes())
        lengths[number] = len(forms)
    return BlockForms(tuple(names), tuple(keys), lengths)
