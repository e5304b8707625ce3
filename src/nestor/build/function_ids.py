"""The ids under which the plugin knows functions and modules (``core/StableIDs.cpp``): 64 bits."""

import xxhash


def name_id(name: str) -> int:
    """Return the id of a name: of a function that other modules may call, or of a module's file."""
    return xxhash.xxh3_64_intdigest(name.encode())


def local_id(name: str, module: int) -> int:
    """Return the id of a function that only its module can call.

    :param module: the module's id.
    """
    both = name_id(name).to_bytes(8, "little") + module.to_bytes(8, "little")
    return xxhash.xxh3_64_intdigest(both)
