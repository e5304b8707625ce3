"""Cycles and penalties measured on this machine: rough bounds that every x86-64 core keeps."""

import subprocess
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.program_cost import penalties
from nestor.program_cost.machine import MachineError
from nestor.program_cost.truth import Command, measure

TURNS = 200_000_000


@pytest.fixture(scope="session")
def chain(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program of dependent additions, a cycle each, that fails with an argument."""
    folder = tmp_path_factory.mktemp("chain")
    (folder / "chain.c").write_text(
        "int main(int Count, char **Words) {\n"
        "  (void)Words;\n"
        "  if (Count > 1) __builtin_trap();\n"
        f"  for (long i = 0; i < {TURNS // 100}; ++i)\n"
        '    __asm__ volatile(".rept 100\\n\\tadd %%rcx, %%rcx\\n\\t.endr" ::: "rcx");\n'
        "  return 0;\n"
        "}\n"
    )
    program = folder / "chain"
    subprocess.run([toolchain.clang, "-O1", folder / "chain.c", "-o", program], check=True)
    return program


def test_a_chain_of_additions_takes_a_cycle_each(chain: Path) -> None:
    own, null = measure([Command(chain)], rounds=2)
    # What shares the core's other thread slows both, so the upper bound is loose.
    assert 0.9 * TURNS < own.minimum < 2.0 * TURNS
    assert own.minimum == pytest.approx(null.minimum, rel=0.5)
    assert own.status == 0


def test_a_program_that_crashes_has_no_cycles(chain: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="crashes or cannot be run"):
        measure([Command(chain, ("crash",))], rounds=1)
    with pytest.raises(MachineError, match="crashes or cannot be run"):
        measure([Command(tmp_path / "absent")], rounds=1)


def test_penalties_of_this_machine() -> None:
    found = penalties.measure()
    assert 5 < found.mispredict < 80
    assert 2 < found.l1 < 10
    assert found.l1 < found.l2 < found.memory
    # A core whose nearest branch target buffer is small pays some cycles, but guesses right.
    assert found.taken_branch < 0.5 * found.mispredict
