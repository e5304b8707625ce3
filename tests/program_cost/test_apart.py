"""Code whose passes hand nothing to each other through memory."""

import pytest

from nestor.cost.isa.decoding import DecodeError, decode
from nestor.program_cost.apart import passes_apart


def texts(code: str) -> list[str]:
    return [one.text for one in decode(passes_apart(bytes.fromhex(code)))]


def test_a_counter_in_memory_is_read_in_one_place_and_written_in_another() -> None:
    assert texts("83406802") == [  # add dword ptr [rax+68h],2
        "mov r8d,[rax+68h]",
        "add r8d,2",
        "mov [rax+4A8h],r8d",
    ]


def test_what_is_read_and_then_written_is_written_elsewhere_and_read_there_again() -> None:
    # mov rcx,[rsp+10h]; add rcx,1; mov [rsp+10h],rcx; mov rdx,[rsp+10h]
    assert texts("488b4c24104883c10148894c2410488b542410") == [
        "mov rcx,[rsp+10h]",
        "add rcx,1",
        "mov [rsp+450h],rcx",
        "mov rdx,[rsp+450h]",
    ]


def test_what_is_written_first_stays() -> None:
    code = bytes.fromhex("48894424084803442408")  # mov [rsp+8],rax; add rax,[rsp+8]
    assert passes_apart(code) == code


def test_a_locked_change_stays() -> None:
    code = bytes.fromhex("f083406802")  # lock add dword ptr [rax+68h],2
    assert passes_apart(code) == code


def test_bytes_that_are_no_code_are_refused() -> None:
    with pytest.raises(DecodeError):
        passes_apart(b"\x06")
