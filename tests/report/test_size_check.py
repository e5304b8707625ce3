"""``nestor size-check``: two builds, functions and decisions, and the exit status by a limit."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nestor.cli.debug.size_check import SizeCheckCommand
from nestor.compiler.objects import measure
from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.report.size_text import as_markdown
from nestor.report.sized_builds import built_files
from nestor.report.sizes import Decided, SizedBuild, compare_sizes
from tests.conftest import make_corpus
from tests.report.programs import BULK, LARGE

SMALL = """extern int getchar(void);
__attribute__((noinline)) int grows(int v) { return v + getchar(); }
__attribute__((noinline)) int stays(int v) { return v * getchar(); }
int main(int c, char **v) { return grows(c) + stays(c); }
"""
GROWN = SMALL.replace("v + getchar()", f"v + {LARGE}")


def build(folder: Path, toolchain: Toolchain, source: str, *more: str) -> Path:
    """Build a folder with a program in ``bin``, its object and things that do not count."""
    (folder / "bin").mkdir(parents=True)
    (folder / "CMakeFiles" / "probe").mkdir(parents=True)
    (folder / "a.c").write_text(source)
    words = [str(toolchain.clang), "-Oz", "-ffunction-sections", *more]
    subprocess.run([*words, "-c", "a.c", "-o", "a.o"], cwd=folder, check=True)
    subprocess.run([*words, "a.o", "-o", "bin/app"], cwd=folder, check=True)
    (folder / "CMakeFiles" / "probe" / "a.out").write_bytes((folder / "bin" / "app").read_bytes())
    (folder / "app").symlink_to("bin/app")
    return folder


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("size")
    return build(root / "base", toolchain, SMALL), build(root / "head", toolchain, GROWN)


def test_folders_are_compared_by_their_linked_files(builds: tuple[Path, Path]) -> None:
    check = compare_sizes(*map(built_files, builds))
    (file,) = check.files
    assert file.name == "bin/app"
    sizes = [measure(folder / "bin/app") for folder in builds]
    assert (file.before, file.after) == (sizes[0].loadable, sizes[1].loadable)
    assert file.percent is not None and file.percent > 0
    assert check.functions[0].name == "grows"
    assert "stays" not in {f.name for f in check.functions}
    assert check.decisions is None
    objects = compare_sizes(*(built_files(folder, objects=True) for folder in builds))
    assert [f.name for f in objects.files] == ["a.o"]


def test_the_exit_status_is_that_of_the_limit(
    builds: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = builds
    percent = compare_sizes(built_files(base), built_files(head)).percent
    assert SizeCheckCommand(base, head).run() == 0
    capsys.readouterr()
    markdown = tmp_path / "size.md"
    failing = SizeCheckCommand(base, head, limit=percent * 0.9, json=True, markdown=markdown)
    with pytest.raises(NestorError, match="bin/app grew by more than"):
        failing.run()
    printed = capsys.readouterr()
    found: dict[str, Any] = json.loads(printed.out)
    assert found["beyond"] == ["bin/app"]
    assert found["functions"][0]["name"] == "grows"
    text = markdown.read_text()
    assert "beyond it" in text
    assert text.index("`grows`") > text.index("`bin/app`")
    assert SizeCheckCommand(base, head, limit=percent * 1.1).run() == 0
    assert SizeCheckCommand(head, base, limit=0.0).run() == 0
    capsys.readouterr()


def test_stripped_programs_are_compared_without_functions(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    base = build(tmp_path / "base", toolchain, SMALL, "-s")
    head = build(tmp_path / "head", toolchain, GROWN, "-s")
    check = compare_sizes(built_files(base), built_files(head))
    assert check.after > check.before
    assert check.functions == ()


def test_two_programs_are_compared_whatever_their_names(
    builds: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app-before").write_bytes((builds[0] / "app").read_bytes())
    assert SizeCheckCommand(tmp_path / "app-before", builds[1] / "app").run() == 0
    out = capsys.readouterr().out
    assert "| `app` |" in out and "`grows`" in out


def test_what_cannot_be_compared_is_refused(builds: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(NestorError, match="no build"):
        SizeCheckCommand(builds[0], tmp_path / "none").run()
    with pytest.raises(NestorError, match="no ELF"):
        SizeCheckCommand(builds[0], tmp_path).run()
    with pytest.raises(NestorError, match="in common"):
        SizeCheckCommand(builds[0], builds[1] / "a.o").run()
    with pytest.raises(NestorError, match="--head-logs"):
        SizeCheckCommand(*builds, base_logs=tmp_path).run()


def test_corpora_tell_which_decisions_changed(
    tmp_path: Path, plugin: Plugin, capsys: pytest.CaptureFixture[str]
) -> None:
    """A function that becomes larger is no longer inlined where stock inlined it."""
    source = f"""extern int getchar(void);
{BULK}
static int callee(int v) {{ return v + %s; }}
int one(int v) {{ return callee(v); }}
int two(int v) {{ return callee(v + 1); }}
int main(int c, char **v) {{ return one(c) + two(c) + bulk_1(c); }}
"""
    texts = (source % "getchar()", source % LARGE)
    corpora = [
        make_corpus(tmp_path / name / "corpus", plugin.toolchain, {"p": text})
        for name, text in zip(("base", "head"), texts, strict=True)
    ]
    command = SizeCheckCommand(
        corpora[0].root, corpora[1].root, policy="default", json=True, limit=50.0
    )
    assert command.run() == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    changed = found["decisions"]["changed"]
    assert {(d["callee"], d["caller"]) for d in changed} >= {("callee", "one"), ("callee", "two")}
    assert all((d["before"], d["after"]) == ("inline", "keep") for d in changed)
    assert found["decisions"]["compared"] > len(changed)


def test_logs_of_builds_tell_the_same(
    builds: tuple[Path, Path], tmp_path: Path, plugin: Plugin
) -> None:
    from nestor.report.sized_builds import logged_decisions
    from tests.command import nestor
    from tests.inlining import PROBLEM

    (tmp_path / "a.c").write_text(SMALL.replace("__attribute__((noinline))", "static"))
    for name, policy in (("base", "never"), ("head", "always")):
        options = ["-mllvm", f"-nestor-log={tmp_path / name}/", "-mllvm", "-nestor-log-names"]
        done = nestor("clang", policy, "--", "-Oz", "-c", "a.c", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    sides = [
        SizedBuild(built_files(b).files, logged_decisions(PROBLEM, tmp_path / name))
        for b, name in zip(builds, ("base", "head"), strict=True)
    ]
    check = compare_sizes(*sides)
    assert check.decisions is not None
    assert {(d.callee, d.before, d.after) for d in check.decisions} == {
        ("grows", "keep", "inline"), ("stays", "keep", "inline")
    }  # fmt: skip
    with pytest.raises(NestorError, match="no log"):
        logged_decisions(PROBLEM, tmp_path / "none")


def test_names_are_no_markup(builds: tuple[Path, Path]) -> None:
    files = built_files(builds[0]).files
    hostile = "x`|<img src=x>@everyone\n| a | b |"
    one = SizedBuild(files, {("m", "1"): Decided(hostile, hostile, "keep")})
    other = SizedBuild(
        built_files(builds[1]).files, {("m", "1"): Decided(hostile, hostile, "inline")}
    )
    text = as_markdown(compare_sizes(one, other), readable={"grows": hostile})
    lines = [line for line in text.splitlines() if "everyone" in line]
    assert len(lines) == 2
    for line in lines:
        for cell in line.replace("\\|", "").split("|"):
            if "everyone" in cell:
                assert cell.strip().startswith("`") and cell.strip().endswith("`")
                assert "`" not in cell.strip()[1:-1]
