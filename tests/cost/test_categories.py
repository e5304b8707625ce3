"""Every block is of some category, and of those of its instructions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.cost.blocks.table import named
from nestor.cost.isa.block_categories import CATEGORIES, categories
from nestor.cost.isa.decoding import DecodeError


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("4801c8", {"integer"}),  # add rax, rcx
        ("488b07", {"integer", "load"}),
        ("488907", {"integer", "store"}),
        ("480107", {"integer", "load", "store"}),  # add [rdi], rax
        ("488d4708", {"integer"}),  # lea
        ("50", {"integer", "store"}),  # push
        ("48f7f1", {"integer", "divide"}),
        ("0f58c1", {"sse"}),
        ("f20f2ac0", {"sse", "convert"}),  # cvtsi2sd
        ("0f51c1", {"sse", "divide"}),  # sqrtps
        ("c5fc5807", {"avx", "load"}),
        ("c5f877", {"avx"}),  # vzeroupper
        ("62f17c4858c1", {"avx512"}),
        ("c5fc41c1", {"avx512"}),  # kandw k0, k0, k1
        ("0ffcc1", {"mmx"}),
        ("d8c1", {"x87"}),
        ("d907", {"x87", "load"}),
        ("def9", {"x87", "divide"}),
        ("f3a4", {"integer", "load", "store", "string"}),
        ("f00fb10f", {"integer", "load", "store", "atomic"}),
        ("870f", {"integer", "load", "store", "atomic"}),  # xchg with memory
        ("0fa2", {"integer", "system"}),
        ("f4", {"integer", "system"}),
        ("c4e278f2c1", {"integer"}),  # andn: VEX, yet general registers
        ("4801c80f58c1", {"integer", "sse"}),
        ("", set()),
    ],
)
def test_categories_of_instructions(code: str, expected: set[str]) -> None:
    assert categories(bytes.fromhex(code)) == expected


@settings(max_examples=200)
@given(st.binary(min_size=1, max_size=15))
def test_whatever_decodes_has_a_category(block: bytes) -> None:
    try:
        found = categories(block)
    except DecodeError:
        return
    assert found
    assert found <= set(CATEGORIES)


def test_the_data_set_has_every_category_that_compilers_emit() -> None:
    found = set().union(*(categories(block) for block in named("zen5").blocks[:20_000:4]))
    assert {"integer", "load", "store", "sse", "avx", "x87", "divide", "convert"} <= found
