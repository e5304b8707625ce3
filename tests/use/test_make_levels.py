"""``nestor make``: each optimisation level has its policy."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

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
        make(command, ["make", "clean"], project)
        words = [word for policy in policies for word in ("--policy", policy)]
        done = make(command, at(level), project, *words)
        assert done.returncode == 0
        assert f"warning: the build is compiled at {level}, and {sentence}" in done.stderr
    make(command, ["make", "clean"], project)
    shutil.rmtree(project / ".nestor")
    done = make(command, BUILD, project)
    assert "1 of 2 objects compiled again" in done.stderr
