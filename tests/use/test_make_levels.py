"""``nestor make``: each optimisation level has its policy."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.use.making import BUILD, MAKEFILE, OZ, at, digests, make


def test_each_level_has_its_policy(command: Path, project: Path) -> None:
    for policy, level in (("shipped-speed", "-O2"), ("shipped-speed", "-O3 -Ofast")):
        done = make(command, at(level), project)
        last = level.split()[-1].replace("fast", "3")
        assert f"at {last} {policy} decides and reads no summary" in done.stderr
        assert not (project / ".nestor" / "summary.txt").exists()
        assert make(command, ["make", "clean"], project).returncode == 0
        assert make(command, at(level), project).returncode == 0
        line = [str(command), "clang", policy, "--", *at(level)[-1][7:].split(), "-c", "app.c"]
        subprocess.run([*line, "-o", "x.o"], cwd=project, check=True)
        assert (project / "x.o").read_bytes() == (project / "app.o").read_bytes()
        make(command, ["make", "clean"], project)
    for policy, level in (("shipped-os", "-Os"), ("distilled", "-Oz")):
        shutil.rmtree(project / ".nestor")
        done = make(command, at(level), project)
        assert "compiled again with the summary of" in done.stderr
        objects = digests(project)
        make(command, ["make", "clean"], project)
        shutil.rmtree(project / ".nestor")
        make(command, at(level), project, "--policy", policy)
        assert digests(project) == objects
        make(command, ["make", "clean"], project)


@pytest.mark.parametrize("response", [False, True])
def test_a_build_may_have_several_levels(
    response: bool, command: Path, project: Path, tmp_path: Path
) -> None:
    """The summary is of all objects, and what is not for size is compiled once."""
    recipe = "\t$(CC) $(CFLAGS) -O2 -MMD -c $< -o $@\n"
    if response:
        recipe = "\techo '$(CFLAGS) -O2' >words && $(CC) @words -c $< -o $@ && rm words\n"
    (project / "Makefile").write_text(f"{MAKEFILE}lib.o: lib.c\n{recipe}")
    done = make(command, BUILD, project, "--json")
    report = json.loads(done.stdout)
    assert (report["objects"], report["functions"], report["warnings"]) == (2, 3, [])
    assert report["compiled_again"] == 1
    objects = digests(project)
    make(command, ["make", "clean"], project)
    make(command, BUILD, project)
    assert digests(project) == objects
    line = [str(command), "clang", "shipped-speed", "--", *OZ.split(), "-O2", "-c", "lib.c"]
    subprocess.run([*line, "-o", tmp_path / "x.o"], cwd=project, check=True)
    assert (tmp_path / "x.o").read_bytes() == (project / "lib.o").read_bytes()


@pytest.mark.parametrize("level", ["-O2", "-Oz"])
def test_the_default_policy_is_stock_at_each_level(
    command: Path, project: Path, level: str
) -> None:
    done = make(command, at(level), project, "--policy", "default")
    assert "the policy is default, stock's own heuristic" in done.stderr
    assert "warning" not in done.stderr


def test_a_build_at_another_level_is_said_to_be_in_vain(command: Path, project: Path) -> None:
    other = at("-Oz -Os")
    done = make(command, other, project, "--policy", "distilled", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["compiled_again"], report["summary"]) == (0, 0, None)
    assert "compiled at -Os, and distilled decides at -Oz alone" in report["warnings"][0]
    assert "Leave --policy out, and shipped-os decides there" in report["warnings"][0]
    make(command, ["make", "clean"], project)
    done = make(command, other, project, "--policy", "shipped-os", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["objects"], report["warnings"]) == (0, 2, [])
    assert Path(report["summary"]).is_file()
    for policies, level, sentence in (
        (["shipped-speed"], "-Os", "shipped-speed decides at -O2 or -O3 alone"),
        ([], "-O1", "distilled, shipped-os, shipped-speed decide at -Oz, -Os, -O2 or -O3 alone"),
    ):
        shutil.rmtree(project / ".nestor")
        make(command, ["make", "clean"], project)
        words = [word for policy in policies for word in ("--policy", policy)]
        done = make(command, at(level), project, *words)
        assert done.returncode == 0
        assert f"warning: the build is compiled at {level}, and {sentence}" in done.stderr
    make(command, ["make", "clean"], project)
    shutil.rmtree(project / ".nestor")
    done = make(command, BUILD, project)
    assert "1 of 2 objects compiled again" in done.stderr


LTO_MAKEFILE = MAKEFILE.replace("$(CC) -o", "$(CC) $(CFLAGS) -fuse-ld=lld -o")


@pytest.mark.parametrize(
    ("level", "policy"), [("-Oz -flto", "shipped-lto"), ("-Oz -flto=thin", "shipped-lto")]
)
def test_links_by_lto_are_under_the_policy_for_them(
    level: str, policy: str, command: Path, project: Path, plugin: Plugin
) -> None:
    (project / "Makefile").write_text(LTO_MAKEFILE)
    done = make(command, at(level), project)
    assert (done.returncode, done.stdout.count(" -c ")) == (0, 2), done.stderr
    assert f"app was linked by LTO under {policy}, which decides there" in done.stderr
    made = (project / "app").read_bytes()
    objects = [str(project / f"{name}.o") for name in ("app", "lib")]
    words = [*OZ.split(), *level.split(), "-fuse-ld=lld", "-o", "app", *objects]
    subprocess.run([str(command), "clang", policy, "--", *words], cwd=project, check=True)
    assert (project / "app").read_bytes() == made
    again = make(command, at(level), project)
    assert again.returncode == 0, again.stderr
    clang = str(plugin.toolchain.clang)
    for name in ("app", "lib"):
        line = [clang, *at(level)[-1][7:].split(), "-c", f"{name}.c", "-o", "stock.o"]
        subprocess.run(line, cwd=project, check=True)
        assert (project / "stock.o").read_bytes() == (project / f"{name}.o").read_bytes()


@pytest.mark.parametrize("level", ["-O2 -flto", "-Oz -flto -fuse-ld=bfd"])
def test_links_that_no_policy_decides_are_stocks(
    level: str, command: Path, project: Path, plugin: Plugin
) -> None:
    makefile = LTO_MAKEFILE if "bfd" not in level else LTO_MAKEFILE.replace("lld", "bfd")
    (project / "Makefile").write_text(makefile)
    done = make(command, at(level), project)
    if done.returncode:  # the plugin that GNU's linker needs for LTO is not everywhere
        assert "bfd" in level and "LLVMgold" in done.stdout + done.stderr
        return
    assert "app was linked by LTO as stock does" in done.stderr
    made = (project / "app").read_bytes()
    make(command, ["make", "clean"], project)
    line = ["make", f"CC={plugin.toolchain.clang}", at(level)[-1]]
    subprocess.run(line, cwd=project, check=True, capture_output=True)
    assert (project / "app").read_bytes() == made


def test_a_library_of_objects_for_lto_is_a_build(command: Path, project: Path) -> None:
    (project / "Makefile").write_text("lib.a: lib.o\n\tllvm-ar-22 rcs $@ $^\n" + MAKEFILE)
    done = make(command, at("-Oz -flto"), project)
    assert done.returncode == 0, done.stderr
    assert (project / "lib.a").is_file()


def test_a_policy_for_lto_is_said_to_be_none_for_this_build(command: Path, project: Path) -> None:
    done = make(command, BUILD, project, "--policy", "shipped-lto")
    assert done.returncode == 0, done.stderr
    assert "shipped-lto is made for links by LTO: without -flto use shipped" in done.stderr
