"""Sort instructions into the categories that features, starting values and tables use."""

from typing import Final

from iced_x86 import CpuidFeature, Instruction, OpKind, RegisterExt

CATEGORIES: Final = (
    "mov", "load", "store", "lea", "alu", "compare", "shift", "multiply", "divide", "select",
    "bits", "stack", "string", "x87", "nop", "exchange", "vector-move", "vector-load",
    "vector-store", "vector-logic", "vector-integer", "vector-multiply", "float-add",
    "float-multiply", "float-divide", "shuffle", "convert", "transfer", "locked", "other",
)  # fmt: skip
"""Names, in the order of the numbers that templates carry."""

_ALU: Final = frozenset(
    {
        "add", "sub", "and", "or", "xor", "inc", "dec", "neg", "not", "adc", "sbb", "cbw", "cwde",
        "cdqe", "cwd", "cdq", "cqo", "movzx", "movsx", "movsxd", "clc", "stc", "cmc", "lahf",
        "sahf", "andn", "blsr", "blsi", "blsmsk", "adcx", "adox",
    }
)  # fmt: skip
_SHIFT: Final = frozenset(
    {
        "shl", "shr", "sar", "sal", "rol", "ror", "rcl", "rcr", "shld", "shrd", "shlx", "shrx",
        "sarx", "rorx",
    }
)  # fmt: skip
_BITS: Final = frozenset(
    {
        "bsf", "bsr", "tzcnt", "lzcnt", "popcnt", "bt", "bts", "btr", "btc", "bswap", "pext",
        "pdep", "bextr", "bzhi", "crc32",
    }
)  # fmt: skip


def category_of(instruction: Instruction, mnemonic: str) -> str:
    """Return the category of an instruction.

    :param mnemonic: in lower case.
    """
    memory = [k for k in range(instruction.op_count) if instruction.op_kind(k) == OpKind.MEMORY]
    vector = any(
        instruction.op_kind(k) == OpKind.REGISTER
        and (
            RegisterExt.is_vector_register(instruction.op_register(k))
            or RegisterExt.is_mm(instruction.op_register(k))
        )
        for k in range(instruction.op_count)
    )
    if instruction.has_lock_prefix or (mnemonic == "xchg" and memory):
        return "locked"
    if vector:
        return _vector(instruction, mnemonic, memory)
    return _scalar(instruction, mnemonic, memory)


def _scalar(instruction: Instruction, mnemonic: str, memory: list[int]) -> str:
    if CpuidFeature.FPU in instruction.cpuid_features():
        return "x87"
    if instruction.is_string_instruction:
        return "string"
    if mnemonic == "mov":
        return "mov" if not memory else "store" if memory == [0] else "load"
    for name, members in (("alu", _ALU), ("shift", _SHIFT), ("bits", _BITS)):
        if mnemonic in members:
            return name
    if mnemonic in ("cmp", "test"):
        return "compare"
    if mnemonic in ("imul", "mul", "mulx"):
        return "multiply"
    if mnemonic in ("idiv", "div"):
        return "divide"
    if mnemonic.startswith(("cmov", "set")):
        return "select"
    if mnemonic in ("push", "pop", "leave", "enter", "pushfq", "popfq"):
        return "stack"
    if mnemonic in ("nop", "endbr64", "pause") or mnemonic.startswith(("prefetch", "reservednop")):
        return "nop"
    if mnemonic in ("xchg", "xadd", "cmpxchg"):
        return "exchange"
    return "lea" if mnemonic == "lea" else "other"


def _vector(instruction: Instruction, mnemonic: str, memory: list[int]) -> str:
    name = mnemonic[1:] if mnemonic.startswith("v") else mnemonic
    general = any(
        instruction.op_kind(k) == OpKind.REGISTER and RegisterExt.is_gpr(instruction.op_register(k))
        for k in range(instruction.op_count)
    )
    if (
        name.startswith("mov") and not name.startswith(("movmsk", "movs", "movhlps", "movlhps"))
    ) or (name in ("movss", "movsd", "lddqu", "broadcastss", "broadcastsd")):
        if memory:
            return "vector-store" if memory == [0] else "vector-load"
        return "transfer" if general else "vector-move"
    if name.startswith("cvt"):
        return "convert"
    if general:
        return "transfer"
    if name.startswith(("div", "sqrt", "rcp", "rsqrt")):
        return "float-divide"
    if name.startswith(("mul", "fmadd", "fmsub", "fnmadd", "fnmsub", "dpp")):
        return "float-multiply"
    if name.startswith(("pmul", "pmadd", "psadbw")):
        return "vector-multiply"
    if name in ("pand", "pandn", "por", "pxor") or name.startswith(("and", "or", "xor")):
        return "vector-logic"
    if name.startswith(("pshuf", "punpck", "pack", "unpck", "shuf", "perm", "palign", "pblend",
                        "blend", "insert", "extract", "broadcast", "pbroadcast", "pmov", "pslldq",
                        "psrldq", "movhlps", "movlhps", "movs", "pinsr", "pextr")):  # fmt: skip
        return "shuffle"
    if name.startswith("p"):
        return "vector-integer"
    if name.startswith(("add", "sub", "min", "max", "cmp", "ucomis", "comis", "hadd", "round")):
        return "float-add"
    return "other"
