"""Measuring: our bytes are the tools' bytes, and functions account for their unwind entries."""

import re
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.objects import CLASSES, ObjectError, measure
from nestor.compiler.toolchain import Toolchain

SOURCE = """
struct Guard { ~Guard(); };
int risky(int);
template <typename T> T keep(T v) { Guard guard; return risky(v) + v; }
int one(int v) { return keep(v); }
int two(int v) { try { return keep(v + 1); } catch (int e) { return e; } }
extern const char text[] = "constant bytes";
"""


@pytest.fixture
def compiled(toolchain: Toolchain, tmp_path: Path) -> Path:
    (tmp_path / "x.cpp").write_text(SOURCE)
    out = tmp_path / "x.o"
    flags = ["-Oz", "-ffunction-sections", "-fno-inline", "-c"]
    subprocess.run([toolchain.clangxx, *flags, tmp_path / "x.cpp", "-o", out], check=True)
    return out


def test_sections_agree_with_llvm_size(toolchain: Toolchain, compiled: Path) -> None:
    spoken = subprocess.run(
        [toolchain.prefix / "bin" / "llvm-size", "-A", compiled],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    expected = dict.fromkeys(CLASSES, 0)
    for name, size in re.findall(r"^(\.\S+)\s+(\d+)\s", spoken, re.MULTILINE):
        for kind in CLASSES:
            if name == kind or name.startswith(kind + "."):
                expected[kind] += int(size)
    sizes = measure(compiled)
    assert sizes.sections == expected
    assert sizes.loadable == sum(expected.values())


def test_functions_carry_code_unwind_and_exception_bytes(compiled: Path) -> None:
    sizes = measure(compiled)
    by_name = {f.name: f for f in sizes.functions}
    assert by_name["_Z4keepIiET_S0_"].weak
    assert not by_name["_Z3onei"].weak
    # Everything but the constant, the CIEs and padding belongs to some function; each entry
    # also counts its 8 bytes in the program's .eh_frame_hdr.
    accounted = sum(f.size for f in sizes.functions) - 8 * len(sizes.functions)
    code = sizes.loadable - sizes.sections[".rodata"]
    assert 0.75 * code < accounted <= code


def test_linked_program(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int f(int v) { return v * 3; } int main(void) { return f(0); }")
    out = tmp_path / "m"
    command = ["-Oz", "-fno-inline", "-fuse-ld=lld", str(tmp_path / "m.c"), "-o", str(out)]
    subprocess.run([toolchain.clang, *command], check=True)
    sizes = measure(out)
    assert {"f", "main"} <= {function.name for function in sizes.functions}
    assert sizes.sections[".eh_frame_hdr"] > 0
    assert sizes.text < out.stat().st_size


def test_not_an_object(tmp_path: Path) -> None:
    broken = tmp_path / "broken.o"
    broken.write_bytes(b"\x7fELF but not really")
    with pytest.raises(ObjectError, match=r"broken\.o"):
        measure(broken)
