"""Loops that follow pointers: each turn loads from where the turn before has loaded the address.

A core fetches ahead while it waits for a miss, but not from an address that is still to come. So
the misses of these loops take their whole time, one after the other.
"""

from collections.abc import Sequence

from nestor.cost.isa.decoding import DecodeError, Instruction, decode


def follows_pointers(code: bytes) -> bool:
    """Tell whether a register that a turn leaves to the next was loaded by an address made of it.

    Code that cannot be decoded follows none.
    """
    try:
        instructions = decode(code)
    except DecodeError:
        return False
    reads = {name for one in instructions for name in one.reads}
    carried = reads & {name for one in instructions for name in one.writes} - {"rsp"}
    return any(_returns_loaded(instructions, name) for name in carried)


def _returns_loaded(instructions: Sequence[Instruction], register: str) -> bool:
    """Tell whether ``register`` at the end comes by a load from ``register`` at the beginning."""
    made_of, loaded = {register}, set[str]()
    for one in instructions:
        address = {name for place in one.memory for name in (place.base, place.index)}
        if one.mnemonic in ("xor", "pxor", "xorps", "sub") and len(one.reads) == 1:
            sources: set[str] = set()  # it sets a register to zero
        else:
            sources = {*one.reads, *one.merges}
        loads = any(place.access != "write" for place in one.memory)
        by_load = bool(loads and address & (made_of | loaded)) or bool(sources & loaded)
        by_value = bool(sources & made_of)
        for name in one.writes:
            (loaded.add if by_load else loaded.discard)(name)
            (made_of.add if by_value else made_of.discard)(name)
    return register in loaded
