"""Places in the source, read from the remarks of the compiler that runs here."""

import subprocess
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.problem.places import read_remarks

SOURCE = "static int twice(int v) { return 2 * v; }\nint four(int v) { return twice(2 * v); }\n"


@pytest.mark.parametrize(
    "name",
    [
        "my file.c",
        "a,b.c",
        "a, b.c",
        "it's, Line: 3.c",
        "tab\tand\nline.c",
        "ü x.c",
        f"{'long' * 9}.c",
        f"{'longer' * 15}.c",
        f"folder/{'long' * 8}.c",
    ],
)
def test_any_file_name_is_read(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    """Whether or not LLVM quotes it, and wherever the line is folded behind it."""
    source, remarks = tmp_path / name, tmp_path / "remarks"
    source.parent.mkdir(exist_ok=True)
    source.write_text(SOURCE)
    passes = [f"-foptimization-record-file={remarks}", "-foptimization-record-passes=inline"]
    words = ["-Os", "-g1", "-c", name, "-o", "out.o"]
    subprocess.run([toolchain.clang, *words, *passes], cwd=tmp_path, check=True)
    (remark,) = read_remarks(remarks)
    assert remark.place == f"{name}:2:26"
    assert set(remark.defined.values()) == {f"{name}:1", f"{name}:2"}
