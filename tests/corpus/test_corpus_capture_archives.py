"""Capture: static libraries, thin ones and those beside a shared library."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from nestor.corpus.model import Input
from tests.corpus.builds import with_unused_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.corpus.conftest import SourceTree


def test_archive_members_are_pulled_only_when_needed(tree: SourceTree, tmp_path: Path) -> None:
    with_unused_files(tree)
    # It would not link if the linker took it: main is defined twice.
    tree.write("a_member_with_a_very_long_name.c", "int main(void) { return 1; }\n")
    for name in ("main", "lib", "extra", "a_member_with_a_very_long_name"):
        assert tree.cc("-c", f"{name}.c").returncode == 0
    members = ["lib.o", "extra.o", "a_member_with_a_very_long_name.o"]
    tree.run(["ar", "rcs", "libdemo.a", *members])
    assert tree.cc("main.o", "-L.", "-ldemo", "-lm", "-pthread", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    (program,) = corpus.programs
    assert [i.value for i in program.inputs] == [
        "-pthread", "demo/main.o", "-Wl,--start-lib", "demo/lib.o", "demo/extra.o",
        "demo/a_member_with_a_very_long_name.o", "-Wl,--end-lib", "-lm",
    ]  # fmt: skip
    shutil.rmtree(tree.source)
    made = tree.relink(corpus, program, tmp_path / "relinked")
    assert subprocess.run([made], capture_output=True, text=True).stdout == "42 main.c"


def test_thin_archives_and_whole_archives(tree: SourceTree) -> None:
    with_unused_files(tree)
    tree.cc("-c", "main.c", "lib.c", "extra.c")
    tree.run(["ar", "rcsT", "libthin.a", "lib.o", "extra.o"])
    assert tree.cc("main.o", "libthin.a", "-o", "thin").returncode == 0
    assert tree.cc("-rdynamic", "main.o", "libthin.a", "-o", "rdynamic").returncode == 0
    exporting = tree.finalise().program("demo/rdynamic")
    assert exporting.inputs[0] == Input("option", "-Wl,--export-dynamic")
    whole = ["-Wl,--whole-archive", "libthin.a", "-Wl,--no-whole-archive"]
    assert tree.cc("main.o", *whole, "-o", "whole").returncode == 0
    thin, all_of_it = (
        [i.value for i in tree.finalise().program(f"demo/{name}").inputs]
        for name in ("thin", "whole")
    )
    members = ["demo/lib.o", "demo/extra.o"]
    assert thin == ["demo/main.o", "-Wl,--start-lib", *members, "-Wl,--end-lib"]
    assert all_of_it == ["demo/main.o", *members]


def test_an_archive_beside_a_shared_library_has_the_code(tree: SourceTree, tmp_path: Path) -> None:
    """As libtool leaves them, and names the shared one in the link."""
    with_unused_files(tree)
    tree.cc("-c", "-fPIC", "lib.c", "-o", "pic.o")
    tree.cc("-c", "lib.c", "main.c")
    (tree.source / ".libs").mkdir()
    tree.cc("-shared", "pic.o", "-o", ".libs/libdemo.so.1")
    (tree.source / ".libs/libdemo.so").symlink_to("libdemo.so.1")
    tree.run(["ar", "rcs", ".libs/libdemo.a", "lib.o"])
    assert tree.cc("main.o", ".libs/libdemo.so", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    assert corpus.missing == ()
    assert len(corpus.program("demo/prog").modules) == 2
    made = tree.relink(corpus, corpus.program("demo/prog"), tmp_path / "relinked")
    assert subprocess.run([made], capture_output=True, text=True).stdout == "42 main.c"
