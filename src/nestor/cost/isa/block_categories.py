"""What kinds of work a block holds, so that errors and counts can be shown by kind.

A block is of every category that one of its instructions is of; the categories overlap, as a block
that loads and multiplies vectors is both. Each instruction is of one of the kinds *integer*, *sse*,
*avx*, *avx512*, *mmx* and *x87* by the registers that it works on and by its encoding. (The finer
kinds that models distinguish are in ``instruction_categories``.)
"""

import functools
from typing import Final

import iced_x86
from iced_x86 import EncodingKind

from nestor.cost.isa.decoding import Instruction, decode

CATEGORIES: Final = (
    "integer",
    "load",
    "store",
    "sse",
    "avx",
    "avx512",
    "mmx",
    "x87",
    "divide",
    "convert",
    "string",
    "atomic",
    "system",
)
"""All names. Integer is general-purpose code, addresses and moves included; divide holds square
roots too; convert is between number formats; system is privileged, serialising or not timed alone
(fences, ``cpuid``, ``rdtsc``, cache control)."""

_SYSTEM: Final = frozenset(
    {
        "cpuid", "rdtsc", "rdtscp", "rdpmc", "rdrand", "rdseed", "rdpid", "lfence", "mfence",
        "sfence", "serialize", "pause", "clflush", "clflushopt", "clwb", "syscall", "sysenter",
        "xgetbv", "xsave", "xsavec", "xsaveopt", "xrstor", "fxsave", "fxrstor", "ldmxcsr",
        "stmxcsr", "vldmxcsr", "vstmxcsr", "fnstcw", "fldcw", "fnstenv", "fldenv", "fnsave",
        "frstor", "fninit", "fnclex", "wait", "rdfsbase", "rdgsbase", "wrfsbase", "wrgsbase",
    }
)  # fmt: skip
_X87_FEATURES: Final = frozenset(
    value
    for name, value in vars(iced_x86.CpuidFeature).items()
    if isinstance(value, int) and name.startswith("FPU")
)
_BY_ENCODING: Final = {EncodingKind.LEGACY: "sse", EncodingKind.EVEX: "avx512"}


def categories(block: bytes) -> frozenset[str]:
    """Return the categories of ``block``, of :data:`CATEGORIES`.

    :raises DecodeError: if the block cannot be decoded.
    """
    found: set[str] = set()
    for instruction in decode(block):
        found |= _of(instruction)
    return frozenset(found)


@functools.lru_cache(1 << 15)
def _of(instruction: Instruction) -> frozenset[str]:
    decoded = iced_x86.Decoder(64, instruction.bytes).decode()
    name = instruction.mnemonic
    found = {_kind(instruction, decoded)}
    found |= {"load" for m in instruction.memory if m.access != "write"}
    found |= {"store" for m in instruction.memory if m.access != "read"}
    if "div" in name or "sqrt" in name:
        found.add("divide")
    if "cvt" in name:
        found.add("convert")
    if decoded.is_string_instruction:
        found.add("string")
    if decoded.has_lock_prefix or (name == "xchg" and instruction.memory):  # implicitly locked
        found.add("atomic")
    if decoded.is_privileged or name in _SYSTEM:
        found.add("system")
    return frozenset(found)


def _kind(instruction: Instruction, decoded: iced_x86.Instruction) -> str:
    """Return what kind of registers an instruction works on."""
    registers = instruction.reads + instruction.writes
    if any(register.startswith("zmm") for register in registers):
        return _BY_ENCODING.get(decoded.encoding, "avx")
    if any(register.startswith("mm") for register in registers):
        return "mmx"
    if any(register[0] == "k" for register in registers):
        return "avx512"
    if not _X87_FEATURES.isdisjoint(decoded.cpuid_features()):
        return "x87"
    return "integer"
