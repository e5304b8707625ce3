"""ELF files as other readers see them, of all classes; damage is refused in one way."""

import struct
import subprocess
from pathlib import Path
from typing import Any

import lief
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.compiler import elf
from nestor.compiler.elf import Elf, ElfError
from nestor.compiler.objects import ObjectError, measured
from nestor.compiler.toolchain import Toolchain

SOURCE = """
extern int far;
int near = 3;
static int own(int v) { return v * far; }
int (*table[])(int) = {own};
__attribute__((weak, visibility("hidden"))) int other(int v) { return own(v) + near; }
int main(void) { return other(2) + table[0](far); }
"""
WHERE = ["x86_64", "i386", "aarch64", "aarch64_be", "powerpc"]
"""Processors of both word lengths and byte orders, with and without addends."""


def compiled(toolchain: Toolchain, folder: Path, *flags: str, source: str = SOURCE) -> Path:
    path, out = folder / "m.c", folder / "m.o"
    path.write_text(source)
    options = ["-ffreestanding", "-fno-inline", *flags]
    subprocess.run([toolchain.clang, *options, "-c", path, "-o", out], check=True)
    return out


@pytest.mark.parametrize("where", WHERE)
def test_it_reads_what_lief_reads(toolchain: Toolchain, tmp_path: Path, where: str) -> None:
    path = compiled(toolchain, tmp_path, f"--target={where}-linux-gnu", "-Oz", "-g")
    own = elf.read(path)
    other: Any = lief.ELF.parse(str(path))
    assert own.kind == elf.RELOCATABLE
    assert (own.machine == elf.X86_64) == (where == "x86_64")
    assert [
        (s.name, s.kind, s.flags & elf.ALLOCATED, s.size, s.link, s.information)
        for s in own.sections
    ] == [
        (str(s.name), int(s.type) & 0xFFFFFFFF, int(s.flags) & elf.ALLOCATED, s.size, s.link,
         s.information)
        for s in other.sections
    ]  # fmt: skip
    for section, theirs in zip(own.sections, other.sections, strict=True):
        if section.size and section.name != ".bss":
            assert own.content(section) == bytes(theirs.content)
    assert [
        (s.name, s.kind, s.binding, s.visibility, s.section, s.value, s.size) for s in own.symbols
    ] == [
        (str(s.name), s.type.value, s.binding.value, s.visibility.value, s.shndx, s.value, s.size)
        for s in other.symtab_symbols
    ]
    ours = [
        (section.name, r.offset, own.symbols[r.symbol].name, r.addend)
        for section, rows in own.relocations()
        for r in rows
    ]
    theirs = [
        (str(r.section.name), r.address, str(r.symbol.name), r.addend)
        for r in other.object_relocations
    ]
    assert sorted(ours) == sorted(theirs)
    assert len(ours) > 5


def test_more_sections_than_a_field_holds(toolchain: Toolchain, tmp_path: Path) -> None:
    """Their number and the symbols' sections are elsewhere then."""
    count = 66_000
    assembly = tmp_path / "many.s"
    lines = (
        f'.section .text.f{i},"ax",@progbits\n.type f{i},@function\nf{i}: ret\n.size f{i},1\n'
        for i in range(count)
    )
    assembly.write_text("".join(lines))
    out = tmp_path / "many.o"
    target = "--target=x86_64-linux-gnu"
    subprocess.run([toolchain.clang, target, "-c", assembly, "-o", out], check=True)
    binary = elf.read(out)
    functions = {s.name: s for s in binary.symbols if s.kind == elf.FUNCTION}
    assert len(functions) == count
    for number in (0, 65_000, count - 1):
        place = binary.sections[functions[f"f{number}"].section]
        assert place.name == f".text.f{number}"
    assert len(measured(binary).functions) == count


def test_a_stripped_program_has_no_symbols(toolchain: Toolchain, tmp_path: Path) -> None:
    source = "int main(void) { return 0; }"
    path, out = compiled(toolchain, tmp_path, source=source), tmp_path / "m"
    subprocess.run([toolchain.clang, "-fuse-ld=lld", "-s", path, "-o", out], check=True)
    binary = elf.read(out)
    assert binary.kind != elf.RELOCATABLE
    assert binary.symbols == []
    assert measured(binary).text > 0


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ElfError, match="cannot be read"):
            elf.read(path)


@pytest.fixture(scope="module")
def sound(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sound")
    return compiled(toolchain, folder, "--target=x86_64-linux-gnu", "-Oz").read_bytes()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damage_is_an_error_or_is_not_noticed(sound: bytes, data: st.DataObject) -> None:
    """No other exception, and nothing that takes memory or time without end."""
    content = bytearray(sound[: data.draw(st.integers(0, len(sound)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if len(content) >= 8:
            value = data.draw(st.sampled_from([0, 1, 255, 1 << 31, (1 << 63) - 1, (1 << 64) - 1]))
            struct.pack_into("<Q", content, data.draw(st.integers(0, len(content) - 8)), value)
    try:
        binary = Elf(bytes(content))
        measured(binary)
        for _ in binary.relocations():
            pass
    except (ElfError, ObjectError):
        pass
