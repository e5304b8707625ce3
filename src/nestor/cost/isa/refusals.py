"""Instructions whose blocks have no throughput that a model could predict, with the reason.

A block ends before an instruction that may leave it, so control flow is no part of any block. What
runs in the kernel, traps to a hypervisor, or waits for something outside of the core takes a time
that no measurement of a repeated block says.
"""

from typing import Final

import iced_x86
from iced_x86 import FlowControl

from nestor.cost.isa.decoding import raw

_OUTSIDE: Final = {
    "rdrand": "waits for a random number generator that all cores share",
    "rdseed": "waits for a random number generator that all cores share",
    "pause": "waits for as long as the processor and its hypervisor choose",
    "tpause": "waits for as long as its operand says",
    "umwait": "waits for another core",
    "umonitor": "waits for another core",
    "monitorx": "waits for another core",
    "mwaitx": "waits for another core",
    "clflush": "writes to memory beyond the caches",
    "clflushopt": "writes to memory beyond the caches",
    "clwb": "writes to memory beyond the caches",
    "clzero": "writes to memory beyond the caches",
    "cldemote": "moves data between caches",
    "wrpkru": "changes the rights of the process",
    "ptwrite": "writes to the trace of the processor",
    "serialize": "waits until all work before it is done",
    "rdpru": "reads a register of the system",
    "enqcmd": "writes to a device",
    "movdir64b": "writes to memory beyond the caches",
    "movdiri": "writes to memory beyond the caches",
    "mcommit": "waits until stores are in memory",
    "senduipi": "interrupts another core",
    "vmfunc": "traps to the hypervisor of a virtual machine",
    **dict.fromkeys(
        ("rdpmc", "sgdt", "sidt", "sldt", "str", "smsw"), "may be used by the kernel only"
    ),
}
"""By mnemonic; what iced-x86 itself says of an instruction is in :func:`instruction_refusal`."""


def refusal(block: bytes) -> str:
    """Return why ``block`` has no throughput to predict; empty if it may have one.

    :raises DecodeError: if the block cannot be decoded.
    """
    for instruction in raw(block):
        reason = instruction_refusal(instruction)
        if reason:
            return f"{name_of(instruction)} {reason}"
    return ""


def instruction_refusal(instruction: iced_x86.Instruction) -> str:
    """Return why one instruction has no throughput to predict, as the end of a sentence."""
    if instruction.flow_control not in (FlowControl.NEXT, FlowControl.EXCEPTION):
        return "may leave the block, which ends before it"
    if instruction.flow_control == FlowControl.EXCEPTION:
        return "raises an exception"
    facts = instruction.op_code()
    if facts.is_privileged or facts.must_be_cpl0 or facts.is_input_output:
        return "may be used by the kernel only"
    name = name_of(instruction)
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    if facts.intel_vm_exit or facts.amd_vm_exit:
        return "traps to the hypervisor of a virtual machine"
    if facts.is_save_restore:
        return "saves or restores the state of the processor"
    return ""


def name_of(instruction: iced_x86.Instruction) -> str:
    """Return the mnemonic in lower case."""
    return _MNEMONICS[instruction.mnemonic]


_MNEMONICS: Final = {
    value: name.lower()
    for name, value in vars(iced_x86.Mnemonic).items()
    if isinstance(value, int) and not name.startswith("_")
}
