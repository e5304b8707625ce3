"""Blocks of objects, programs and libraries: from a map, by disassembly, and of damaged files."""

import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import lief
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.compiler.toolchain import Toolchain
from nestor.cost.elf import block_map
from nestor.cost.elf.binary import ObjectFileError
from nestor.cost.elf.block_map import BlockMapError
from nestor.cost.isa.decoding import decode, raw
from nestor.cost.sources import objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.splitting import split
from nestor.files import ReadError

# A jump table, a loop with filling before it, calls in the middle of blocks, a cold section.
SOURCE = """
extern int g(int); extern void h(void);
int f(int a, int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) { if (p[i] > a) s += g(p[i]); else s ^= p[i] / 3; }
  switch (a) {
    case 0: h(); return 1; case 1: return s; case 2: return s * 2; case 3: h(); break;
    case 4: return g(s); case 5: return 7; case 6: return s - 9;
  }
  return s;
}
__attribute__((cold)) int k(int x) { return f(x, 0, 0) + 1; }
"""
PROGRAM = SOURCE + "int g(int x) { return x ^ 5; } void h(void) {} int main(void) { return k(3); }"


def compiled(folder: Path, toolchain: Toolchain, *flags: str, text: str = SOURCE) -> Path:
    """Compile and return the object, or with ``-o NAME`` among the flags the program."""
    (folder / "s.c").write_text(text)
    linked = "-fuse-ld=lld" in flags
    out = folder / ("program" if linked else "s.o")
    command = [str(toolchain.clang), "-O2", *([] if linked else ["-c"]), *flags, "s.c"]
    subprocess.run([*command, "-o", str(out)], cwd=folder, check=True, capture_output=True)
    return out


def maps_of(path: Path) -> list[tuple[int, bytes]]:
    """Return place in the file and content of every map."""
    binary = lief.ELF.parse(str(path))  # it must outlive its sections
    assert binary is not None
    return [(s.offset, bytes(s.content)) for s in binary.sections if s.name == block_map.SECTION]


def blocks_of(path: Path) -> Collection:
    into = Collection()
    objects.read(path, into)
    return into


def counted(found: Collection) -> Counter[bytes]:
    table = found.table()
    assert table.frequency is not None
    return Counter(dict(zip(table.blocks, table.frequency.astype(int).tolist(), strict=True)))


def test_the_address_map_and_disassembly_agree(tmp_path: Path, toolchain: Toolchain) -> None:
    plain = blocks_of(compiled(tmp_path, toolchain))
    mapped = blocks_of(compiled(tmp_path, toolchain, "-fbasic-block-address-map"))
    sections = blocks_of(
        compiled(tmp_path, toolchain, "-fbasic-block-address-map", "-ffunction-sections")
    )
    assert (plain.mapped, mapped.mapped, sections.mapped) == (0, 2, 2)
    assert plain.functions == mapped.functions == 2
    assert counted(mapped) == counted(plain)
    assert counted(sections) == counted(plain)
    assert set(plain.table().function or ()) == {"f", "k"}


def test_no_block_holds_what_leaves_it(tmp_path: Path, toolchain: Toolchain) -> None:
    for block in blocks_of(compiled(tmp_path, toolchain)).table().blocks:
        assert all(instruction.flow_control == 0 for instruction in raw(block))


def test_programs_are_read_with_symbols_with_a_map_and_stripped(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    linked = ("-fuse-ld=lld", "-fbasic-block-address-map")
    program = compiled(tmp_path, toolchain, *linked, text=PROGRAM)
    mapped = blocks_of(program)
    assert mapped.mapped == 5
    ours = counted(blocks_of(compiled(tmp_path, toolchain, text=PROGRAM)))
    strip = toolchain.prefix / "bin" / "llvm-strip"
    subprocess.run([strip, "--strip-all", str(program)], check=True)
    stripped = blocks_of(program)  # what is left are the unwind tables
    assert stripped.mapped == 0
    assert stripped.functions >= 5
    # Addresses are filled in by the linker, so only the shape can be compared.
    shapes = {tuple(i.code for i in decode(block)) for block in ours}
    for found in (mapped, stripped):
        assert shapes <= {tuple(i.code for i in decode(block)) for block in counted(found)}


def test_a_section_without_symbols_is_one_function(tmp_path: Path, toolchain: Toolchain) -> None:
    text = 'asm(".text\\n xor %eax, %eax\\n ret\\n .p2align 4\\n inc %eax\\n ret");'
    found = blocks_of(compiled(tmp_path, toolchain, text=text))
    assert found.functions == 1
    assert found.table().blocks == (bytes.fromhex("31c0"), bytes.fromhex("ffc0"))


def test_maps_are_read_as_llvm_reads_them(tmp_path: Path, toolchain: Toolchain) -> None:
    readobj = toolchain.prefix / "bin" / "llvm-readobj"
    analyses = "-pgo-analysis-map=func-entry-count,bb-freq,br-prob"
    for more in ((), ("-mllvm", analyses)):
        object_file = compiled(tmp_path, toolchain, "-fbasic-block-address-map", *more)
        said = subprocess.run(
            [readobj, "--bb-addr-map", str(object_file)], check=True, capture_output=True, text=True
        ).stdout
        entry = r"\bID: (\w+)\s+Offset: (0x\w+).*?Size: (0x\w+).*?CanFallThrough: (\w+)"
        expected = [
            (int(offset, 16), int(size, 16), falls == "Yes", int(identity))
            for identity, offset, size, falls in re.findall(entry, said, re.DOTALL)
        ]
        contents = [content for _, content in maps_of(object_file)]
        assert len(contents) == 2
        assert len(expected) > 10
        functions = [f for content in contents for f in block_map.parse(content)]
        blocks = [b for f in functions for part in f.ranges for b in part.blocks]
        assert [block[:4] for block in blocks] == expected
        counts = [int(count) for count in re.findall(r"FuncEntryCount: (\d+)", said)]
        assert [f.entry_count for f in functions] == (counts if more else [None, None])
        frequencies = [int(text) for text in re.findall(r"\bFrequency: (\d+)", said)]
        assert [b.frequency for b in blocks] == (frequencies if more else [None] * len(blocks))
        edges = re.findall(r"\bID: (\d+)\s+Probability: (0x\w+)", said)
        expected_edges = [(int(to), int(chance, 16) / 2**31) for to, chance in edges]
        assert bool(edges) == bool(more)
        assert [edge for block in blocks for edge in block.successors] == expected_edges


@settings(max_examples=200)
@given(st.binary(max_size=80), st.sampled_from([b"", b"\x05\x20\x00", b"\x02\x00", b"\x03\x2f"]))
def test_any_map_is_read_or_refused(content: bytes, head: bytes) -> None:
    try:
        functions = block_map.parse(head + content)
    except BlockMapError:
        return
    assert all(b.size >= 0 for f in functions for part in f.ranges for b in part.blocks)


def test_a_map_of_tomorrow_falls_back_to_disassembly(tmp_path: Path, toolchain: Toolchain) -> None:
    path = compiled(tmp_path, toolchain, "-fbasic-block-address-map")
    content = bytearray(path.read_bytes())
    content[maps_of(path)[0][0]] = 99
    path.write_bytes(content)
    found = blocks_of(path)
    assert found.mapped == 0
    assert list(found.failures) == [
        "A basic-block address map has version 99 and features 0x20, which cannot be read; compile"
        " with LLVM 22."
    ]
    assert counted(found) == counted(blocks_of(compiled(tmp_path, toolchain)))


def test_libraries_are_read_member_by_member(tmp_path: Path, toolchain: Toolchain) -> None:
    alone = blocks_of(compiled(tmp_path, toolchain))
    long = tmp_path / "a_member_with_a_name_that_is_too_long.o"
    (tmp_path / "s.o").rename(long)
    (tmp_path / "notes.txt").write_text("odd")
    (tmp_path / "b.o").write_bytes(long.read_bytes())
    library = tmp_path / "l.a"
    names = [long.name, "notes.txt", "b.o"]
    tool = toolchain.prefix / "bin" / "llvm-ar"
    subprocess.run([tool, "rcs", str(library), *names], cwd=tmp_path, check=True)
    found = blocks_of(library)
    assert found.files == 2
    assert sum(counted(found).values()) == 2 * sum(counted(alone).values())
    assert found.table().source == (f"{library}({long.name})",) * len(found)
    assert list(found.failures) == [
        "it is not an ELF file; name objects, programs or static libraries."
    ]
    subprocess.run([tool, "--thin", "rcs", "thin.a", *names], cwd=tmp_path, check=True)
    assert counted(blocks_of(tmp_path / "thin.a")) == counted(found)
    (tmp_path / "b.o").unlink()
    with pytest.raises(ReadError, match=r"b\.o cannot be read as a member of .*thin\.a"):
        blocks_of(tmp_path / "thin.a")
    library.write_bytes(library.read_bytes()[:-40])
    with pytest.raises(ObjectFileError, match=r"cut short|damaged"):
        blocks_of(library)


def test_what_is_no_code_is_refused_with_a_reason(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "text").write_text("int main;")
    with pytest.raises(ObjectFileError, match="not an ELF file"):
        blocks_of(tmp_path / "text")
    with pytest.raises(ReadError, match="cannot be read"):
        blocks_of(tmp_path / "absent")
    other = compiled(tmp_path, toolchain, "--target=aarch64-linux-gnu")
    with pytest.raises(ObjectFileError, match="not for x86-64"):
        blocks_of(other)
    assert objects.is_code(other)
    assert not objects.is_code(tmp_path / "text")


def test_damaged_objects_never_crash(tmp_path: Path, toolchain: Toolchain) -> None:
    content = compiled(tmp_path, toolchain, "-fbasic-block-address-map").read_bytes()
    read = 0
    for seed in range(150):
        chance = random.Random(seed)
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 4, 30])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        try:
            objects.read_object(bytes(damaged), "x", Collection())
            read += 1
        except ObjectFileError:
            pass
    assert 0 < read < 150


@settings(max_examples=200)
@given(st.binary(max_size=120))
def test_any_bytes_are_split_into_code_that_runs_through(code: bytes) -> None:
    pieces = split(code)
    position = 0
    for block in pieces.blocks:
        assert block
        position = code.index(block, position)  # in order and apart
        assert sum(i.len for i in raw(block)) == len(block)
        assert all(i.flow_control == 0 for i in raw(block))
        position += len(block)


@pytest.mark.parametrize(
    ("code", "blocks", "empty", "undecodable"),
    [
        ("31c0 c3", ["31c0"], 0, 0),
        ("31c0 7402 ffc0 ffc1 c3", ["31c0", "ffc0", "ffc1"], 0, 0),  # je over inc
        ("ffc0 ffc8 75fc c3", ["ffc0", "ffc8"], 1, 0),  # a loop back, then only ret
        ("ffc0 e800000000 ffc1 c3", ["ffc0", "ffc1"], 0, 0),  # a call ends a block
        ("ffc0 f30f1efa ffc1 c3", ["ffc0", "f30f1efaffc1"], 0, 0),  # endbr64 begins one
        ("ffc0 c3 660f1f4400009090 cc ffc1 c3", ["ffc0", "ffc1"], 0, 0),  # filling
        ("ffc0 7402 9090 ffc1 c3", ["ffc0", "9090", "ffc1"], 0, 0),  # filling that runs
        ("ffc0 06 ffc1 c3", [], 0, 1),  # 06 is no instruction in 64 bits
        ("7403 ffc0 06 ffc1 c3", ["ffc1"], 1, 1),  # goes on at the jump's target
        ("ffc0", ["ffc0"], 0, 0),  # runs into what follows
        ("eb01 b8 ffc0 c3", ["ffc0"], 1, 1),  # into what would be another instruction
        ("", [], 0, 0),
    ],
)
def test_where_blocks_begin_and_end(
    code: str, blocks: list[str], empty: int, undecodable: int
) -> None:
    pieces = split(bytes.fromhex(code.replace(" ", "")))
    assert [block.hex() for block in pieces.blocks] == blocks
    assert (pieces.empty, pieces.undecodable) == (empty, undecodable)
