import subprocess
from pathlib import Path

import pytest

from nestor.compiler.objects import ObjectError
from nestor.compiler.toolchain import Toolchain
from nestor.problems.regalloc_eviction.object_cost import FunctionCost, function_code, static_cost

SOURCE = """
    .text
    .globl one, two, alias
    .type one, @function
    .type alias, @function
one:
alias:
    push %rbx               # writes
    mov 8(%rsp), %rax       # reads
    nopw 0(%rax,%rax,1)     # padding
    add %rax, 16(%rsp)      # reads and writes
    lea 8(%rsp), %rbx       # neither
    pop %rbx                # reads
    ret                     # reads
    .size one, .-one
    .size alias, .-alias
    .type two, @function
two:
    ret
    .size two, .-two
"""


@pytest.fixture
def assembled(tmp_path: Path, toolchain: Toolchain) -> Path:
    source = tmp_path / "x.s"
    source.write_text(SOURCE)
    out = tmp_path / "x.o"
    subprocess.run([toolchain.clang, "-c", source, "-o", out], check=True, timeout=60)
    return out


def test_instructions_and_accesses_count(assembled: Path) -> None:
    cost = static_cost(function_code(assembled))
    (first,) = cost.functions.keys() - {"two"}
    assert first in ("one", "alias")  # two symbols of one function
    one = cost.functions[first]
    assert (one.instructions, one.reads, one.writes) == (6, 4, 2)
    assert one.cost == 12
    assert cost.functions["two"] == FunctionCost(1, 1, 0, 1)
    assert cost.total("cost") == 14
    assert cost.total("text") == one.text + 1


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "x.o"
    damaged.write_bytes(b"\x7fELF nothing")
    for path in (damaged, tmp_path / "missing.o"):
        with pytest.raises(ObjectError, match="no complete ELF object"):
            function_code(path)
