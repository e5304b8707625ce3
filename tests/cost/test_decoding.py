"""Decoding is complete or refused, and says what instructions read and write."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.cost.blocks.table import named
from nestor.cost.isa.decoding import DecodeError, Instruction, Memory, decode, sequence

ARITHMETIC_FLAGS = ("OF", "SF", "ZF", "AF", "CF", "PF")


def one(text: str) -> Instruction:
    (instruction,) = decode(bytes.fromhex(text))
    return instruction


@settings(max_examples=300)
@given(st.binary(max_size=64))
def test_any_bytes_decode_completely_or_are_refused_where_they_break(block: bytes) -> None:
    try:
        instructions = decode(block)
    except DecodeError as error:
        assert 0 <= error.offset < len(block)
        before = decode(block[: error.offset])  # what stands before the offset is code
        assert sum(i.length for i in before) == error.offset
        with pytest.raises(DecodeError):
            sequence(block)
    else:
        assert b"".join(i.bytes for i in instructions) == block
        assert all(1 <= i.length <= 15 for i in instructions)
        assert len(sequence(block)) == len(instructions)


@settings(max_examples=100)
@given(st.lists(st.sampled_from(named("zen5").blocks[:500]), max_size=4))
def test_blocks_in_a_row_decode_like_each_alone(blocks: list[bytes]) -> None:
    alone = tuple(i for block in blocks for i in decode(block))
    assert decode(b"".join(blocks)) == alone


def test_what_is_broken_is_said_with_its_place() -> None:
    with pytest.raises(DecodeError, match=r"offset 2 \(0f\)") as caught:
        decode(bytes.fromhex("89c80f"))
    assert caught.value.offset == 2
    assert decode(b"") == ()


def test_implicit_registers_and_flags_are_told() -> None:
    multiply = one("48f7e1")
    assert multiply.text == "mul rcx"
    assert multiply.reads == ("rax", "rcx")
    assert multiply.writes == ("rax", "rdx")
    assert multiply.flags_written == ARITHMETIC_FLAGS
    move = one("0f44c1")
    assert (move.mnemonic, move.flags_read, move.flags_written) == ("cmove", ("ZF",), ())
    assert move.reads == ("rax", "rcx")
    assert one("4883d005").flags_read == ("CF",)


def test_a_cleared_register_is_not_read() -> None:
    assert one("31c0").reads == ()
    assert one("31c8").reads == ("rax", "rcx")


def test_writes_of_a_part_are_marked() -> None:
    assert one("b001").merges == ("rax",)  # mov al, 1
    assert one("6689c8").merges == ("rax",)  # mov ax, cx
    assert one("89c8").merges == ()  # mov eax, ecx clears the rest


def test_vector_registers_go_by_their_full_width() -> None:
    assert one("c5f858c1").reads == ("zmm0", "zmm1")
    assert one("c5f858c1").writes == ("zmm0",)


def test_memory_is_told_with_implicit_accesses() -> None:
    assert one("50").memory == (Memory("rsp", "", 1, -8, "", 8, "write"),)
    assert one("488b44b1f8").memory == (Memory("rcx", "rsi", 4, -8, "", 8, "read"),)
    assert one("f00fb10f").memory == (Memory("rdi", "", 1, 0, "", 4, "read-write"),)
    assert one("6448 8b042528000000".replace(" ", "")).memory[0].segment == "fs"
    assert one("8d4801").memory == ()  # lea computes an address and reads nothing
    assert [m.access for m in one("a4").memory] == ["write", "read"]


def test_an_address_relative_to_the_code_does_not_depend_on_where_it_lies() -> None:
    load = bytes.fromhex("488b0534120000")
    assert decode(load)[0].memory[0] == Memory("rip", "", 1, 0x1234, "", 8, "read")
    assert decode(b"\x90" + load)[1] == decode(load)[0]


def test_immediates_are_signed_as_the_instruction_has_them() -> None:
    assert one("83c0ff").immediate == -1
    assert one("b8ffffffff").immediate == 0xFFFFFFFF
    assert one("89c8").immediate is None


def test_the_data_set_decodes() -> None:
    table = named("zen5")
    for block in table.blocks[::200]:
        assert sum(i.length for i in decode(block)) == len(block)
