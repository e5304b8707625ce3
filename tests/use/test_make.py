"""``nestor make``: whole builds with a summary."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.use.making import BUILD, LIBRARY, MAIN, MAKEFILE, OZ, digests, make, sources, times


def test_the_summary_is_that_of_the_stock_build(
    command: Path, project: Path, plugin: Plugin, tmp_path: Path
) -> None:
    stock = sources(tmp_path / "stock")
    line = [*BUILD, f"CC={plugin.toolchain.clang}"]
    subprocess.run(line, cwd=stock, check=True, capture_output=True)
    expected = tmp_path / "expected.txt"
    line = [str(command), "summary", str(stock), "--out", str(expected)]
    subprocess.run(line, check=True, capture_output=True)
    done = make(command, BUILD, project, "--json")
    report = json.loads(done.stdout)
    summary = project / ".nestor" / "summary.txt"
    assert summary.read_text() == expected.read_text()
    assert report["summary"] == str(summary)
    assert (report["objects"], report["compiled_again"], report["failed"]) == (2, 1, [])
    same = {n for n, digest in digests(stock).items() if digests(project)[n] == digest}
    assert same == {"lib.o"}, "the decisions of one module change, and only its object"


def test_an_edit_is_compiled_with_the_summary_that_is_there(command: Path, project: Path) -> None:
    make(command, BUILD, project)
    before, stamps = digests(project), times(project)
    summary = (project / ".nestor" / "summary.txt").read_bytes()
    (project / "app.c").write_text(MAIN + "// edited\n")
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stderr
    after = times(project)
    assert after["app.o"] != stamps["app.o"]
    assert after["lib.o"] == stamps["lib.o"]
    assert digests(project) == before
    assert (project / ".nestor" / "summary.txt").read_bytes() == summary


def test_a_plain_build_with_the_compilers_that_are_left_makes_the_same(
    command: Path, project: Path
) -> None:
    make(command, BUILD, project)
    before, stamps = digests(project), times(project)
    (project / "app.c").write_text(MAIN + "// edited\n")
    found = f"{project / '.nestor' / 'bin'}:{os.environ['PATH']}"
    line = [*BUILD, "CC=clang-22"]
    subprocess.run(line, cwd=project, env=os.environ | {"PATH": found}, check=True)
    assert times(project)["app.o"] != stamps["app.o"]
    assert digests(project) == before


def test_the_command_may_be_a_compiler(command: Path, project: Path) -> None:
    for name in ("app", "lib"):
        line = ("clang-22", *shlex.split(OZ), "-c", f"{name}.c")
        assert make(command, line, project).returncode == 0
    assert (project / ".nestor" / "summary.txt").is_file()


def test_renew_makes_the_summary_anew(command: Path, project: Path) -> None:
    make(command, BUILD, project)
    before = digests(project)
    text = (project / ".nestor" / "summary.txt").read_text()
    (project / "lib.c").write_text(LIBRARY + "int more(int x) { return library(x) + 2; }\n")
    make(command, BUILD, project)
    done = make(command, BUILD, project, "--renew")
    assert done.returncode == 0, done.stderr
    assert "summary of 4 functions" in done.stderr
    (project / "lib.c").write_text(LIBRARY)
    make(command, BUILD, project)
    make(command, BUILD, project, "--renew")
    assert (project / ".nestor" / "summary.txt").read_text() == text
    assert digests(project) == before


def test_a_build_that_fails_goes_on_where_it_was(command: Path, project: Path) -> None:
    expected = sources(project.parent / "other")
    make(command, BUILD, expected)
    done = make(command, ["sh", "-c", f"{shlex.join(BUILD)}; exit 7"], project)
    assert done.returncode == 7
    assert "exit status 7" in done.stderr
    assert not (project / ".nestor" / "summary.txt").exists()
    done = make(command, BUILD, project)  # make has nothing to do, and the objects are stock
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    assert digests(project)["app.o"] == digests(expected)["app.o"]
    assert digests(project)["app"] == digests(expected)["app"]


def test_objects_of_a_first_build_are_brought_under_the_summary(
    command: Path, project: Path
) -> None:
    """As after an interruption between the summary and the last object."""
    expected = sources(project.parent / "other")
    make(command, BUILD, expected)
    done = make(command, ["sh", "-c", f"{shlex.join(BUILD)}; exit 7"], project)
    assert done.returncode == 7
    assert digests(project)["app.o"] != digests(expected)["app.o"]
    shutil.copy(expected / ".nestor" / "summary.txt", project / ".nestor")
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    assert digests(project) == digests(expected)
    assert not (project / ".nestor" / "unfinished").exists()


def test_a_build_without_our_compilers_is_an_error(
    command: Path, project: Path, plugin: Plugin
) -> None:
    makefile = project / "Makefile"
    makefile.write_text(f"CC = {plugin.toolchain.clang}\n{MAKEFILE}")
    done = make(command, BUILD, project)
    assert done.returncode == 1
    assert "made no object with the compilers of 'nestor make'" in done.stderr
    assert "CC=clang" in done.stderr
    make(command, ["make", "clean"], project, "--policy", "shipped")
    done = make(command, [*BUILD, "CC=clang"], project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr


def test_programs_without_objects_are_said_to_be_without_a_summary(
    command: Path, project: Path, plugin: Plugin
) -> None:
    app = project / "Makefile"
    app.write_text("app: app.c lib.c\n\t$(CC) -Oz -o $@ $^\n")
    done = make(command, ["make"], project)
    assert done.returncode == 0
    assert "app was compiled and linked by one command" in done.stderr
    stock = project / "stock"
    line = [plugin.toolchain.clang, "-Oz", "-o", stock, "app.c", "lib.c"]
    subprocess.run([*map(str, line)], cwd=project, check=True)
    assert (project / "app").read_bytes() == stock.read_bytes()
    # Up to date is no error, and objects beside such a program have their summary.
    assert make(command, ["make"], project).returncode == 0
    app.write_text(f"tool: app.c lib.c\n\t$(CC) -Oz -o $@ $^\n{MAKEFILE}")
    (project / "app").unlink()
    done = make(command, [*BUILD, "app", "tool"], project)
    assert "1 of 2 objects compiled again" in done.stderr
    assert "warning: tool was compiled and linked" in done.stderr


def test_a_compile_that_fails_later_keeps_its_object(command: Path, project: Path) -> None:
    # An option that cannot be replayed on bitcode, and a source that is gone after its compile.
    recipe = "\t$(CC) $(CFLAGS) -mllvm -inline-threshold=5 -c $< -o $@ && mv app.c app.gone\n"
    rule = f"app.o:\n{recipe.replace('$<', 'app.c')}"
    (project / "Makefile").write_text(MAKEFILE + rule)
    done = make(command, BUILD, project)
    assert done.returncode == 1
    assert "stays as it is" in done.stderr
    assert "app.o" in done.stderr
    (project / "app.gone").rename(project / "app.c")
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr


def test_a_policy_without_a_summary_needs_one_build(command: Path, project: Path) -> None:
    done = make(command, BUILD, project, "--policy", "never")
    assert done.returncode == 0
    assert "at -Oz never decides and reads no summary" in done.stderr
    assert not (project / ".nestor" / "summary.txt").exists()
    line = [str(command), "clang", "never", "--", *OZ.split(), "-c", "app.c", "-o", "x.o"]
    subprocess.run(line, cwd=project, check=True)
    assert (project / "x.o").read_bytes() == (project / "app.o").read_bytes()


def test_nestor_clang_reads_and_leaves_what_the_variable_names(
    command: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sources(project.parent / "other")
    make(command, BUILD, expected)
    monkeypatch.setenv("NESTOR_PROGRAM", str(project / "kept"))
    line = [*BUILD, f"CC={command} clang distilled --"]
    subprocess.run(line, cwd=project, check=True, capture_output=True)
    done = make(command, line, project)  # up to date: only the summary is to be made
    assert done.returncode == 0, done.stderr
    summary = project / "kept" / "summary.txt"
    assert summary.read_text() == (expected / ".nestor" / "summary.txt").read_text()
    assert digests(project) == digests(expected)
    subprocess.run(["make", "clean"], cwd=project, check=True, capture_output=True)
    subprocess.run(line, cwd=project, check=True, capture_output=True)
    assert digests(project) == digests(expected)


def test_several_sources_and_response_files(command: Path, project: Path) -> None:
    (project / "Makefile").write_text(
        "app: app.o lib.o\n\t$(CC) -o $@ $^\n"
        "app.o lib.o &: app.c lib.c\n"
        "\techo '$(CFLAGS) app.c lib.c' >words && $(CC) -c @words && rm words\n"
    )
    done = make(command, BUILD, project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compiled again with the summary of 3 functions" in done.stderr
    first = digests(project)
    for path in [*project.glob("*.o"), project / "app"]:
        path.unlink()
    make(command, BUILD, project)
    assert digests(project) == first


@pytest.mark.parametrize("options", ["-g", "-fPIC -O2", "-std=c++20 -DX", "-march=haswell"])
def test_objects_from_bitcode_are_those_from_source(
    options: str, command: Path, project: Path
) -> None:
    many = "".join(f'if (c > {n}) puts("text {n}"), printf("line {n}\\n");\n' for n in range(20))
    (project / "app.c").write_text(MAIN.replace('puts("hello");', many))
    line = ["make", "CC=clang++", f"CFLAGS={options} {OZ}"]
    done = make(command, line, project)
    assert done.returncode == 0, done.stderr
    first = digests(project)
    make(command, ["make", "clean"], project)
    make(command, line, project)
    assert digests(project) == first


def test_ccache_answers_once_there_is_a_summary(command: Path, project: Path) -> None:
    cache = {"CCACHE_DIR": str(project / "cache"), "CC": "ccache clang"}
    make(command, BUILD, project, environment=cache)
    first = digests(project)
    for _ in range(2):
        make(command, ["make", "clean"], project, environment=cache)
        make(command, BUILD, project, environment=cache)
        assert digests(project) == first
    line = ["ccache", "--print-stats"]
    stats = subprocess.run(
        line, env=os.environ | cache, capture_output=True, text=True, check=True
    ).stdout
    counts = dict(map(str.split, stats.splitlines()))
    hits = int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])
    assert hits == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "The build's command follows '--'"),
        (["make", "-j8"], "The build's command follows '--'"),
        (["shipped", "--", "make"], "a policy is named by --policy shipped"),
        (["--"], "There is no command after '--'"),
        (["--link", "x", "--", "make"], "--link x is none of gc, no-gc, icf"),
        (["--jobs", "0", "--", "make"], "--jobs 0 is no whole number from 1 on"),
        (["--again", "half", "--", "make"], "--again half is no whole number from 0 on"),
        (["--policy", "--", "make"], "--policy needs a value"),
        (["--renew", "--frob", "--", "make"], "'--frob' is no option"),
        (["--jobs=1", "--jobs=2", "--", "make"], "--jobs is given twice"),
    ],
)
def test_wrong_words_are_named(words: list[str], said: str, command: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(command), "make", *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_compiler_that_is_not_llvm_22_is_named(command: Path, project: Path) -> None:
    done = make(command, BUILD, project, "--llvm", "/usr/bin/true")
    assert done.returncode == 1
    assert "LLVM" in done.stderr or "clang" in done.stderr
    assert not (project / "app").exists()
