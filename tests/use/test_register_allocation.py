"""Policies about register allocation in ordinary builds, alone and beside one about inlining."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import nestor
from nestor.compiler.plugin import Plugin
from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.policy.portfolio import portfolio_of
from nestor.policy.rule import PICK, VALUE
from tests.cli.test_startup import LIBRARIES, TERMINAL, imported
from tests.use.conftest import PRESSURE
from tests.use.test_flags import OVERRIDES, flags, run

ALLOCATION: Final = "nestor-allocation-overrides 1\n"


def save_linear(path: Path, problem: str, rule: str, feature: str, weight: float) -> None:
    """Write a policy whose logit is one feature times a weight."""
    policy = network.build(
        (feature,),
        "decision",
        LogNormalisation(np.zeros(1), np.ones(1)),
        (Layer(np.full((1, 1), weight, dtype=np.float32), np.zeros(1, dtype=np.float32)),),
        problem=problem,
        rule=rule,
        candidate_features=(feature,) if rule == PICK.name else (),
    )
    bundle.save(policy, path)


@pytest.fixture
def folder(tmp_path: Path, plugin: Plugin) -> Path:
    """Return a folder with ``x.c`` and policies about eviction and priority."""
    assert plugin.path.is_file()
    (tmp_path / "x.c").write_text(PRESSURE)
    save_linear(tmp_path / "e.safetensors", "regalloc-eviction", PICK.name, "is_own", 1.0)
    save_linear(tmp_path / "p.safetensors", "regalloc-priority", VALUE.name, "weight", 1.0)
    return tmp_path


def built(folder: Path, *command: object, level: str = "-O2") -> bytes:
    """Compile ``x.c`` and return the object."""
    words = ["-Wall", "-Werror", level, "-c", "x.c", "-o", "x.o"]
    done = run(*command, *words, cwd=folder)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return (folder / "x.o").read_bytes()


def test_policies_of_several_problems_decide_in_one_compile(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    clang, load = plugin.toolchain.clang, f"-fpass-plugin={plugin.path}"
    objects = {}
    for words in ("never", "e.safetensors", "p.safetensors", "never e.safetensors p.safetensors"):
        options = flags(command, *words.split(), cwd=folder)
        objects[words] = built(folder, clang, *options, level="-Oz")
        wrapper = (command, "clang", *words.split(), "--")
        assert built(folder, *wrapper, level="-Oz") == objects[words], words
    assert len(set(objects.values())) == len(objects)
    files = {"nestor-eviction": "e", "nestor-priority": "p"}
    by_hand = [f"-{option}={folder}/{name}.safetensors" for option, name in files.items()]
    by_hand = [word for option in by_hand for word in ("-mllvm", option)]
    never = next(word for word in flags(command, "never") if "policy=" in word)
    expected = built(folder, clang, load, "-mllvm", never, *by_hand, level="-Oz")
    assert objects["never e.safetensors p.safetensors"] == expected


def test_the_default_of_each_problem_gives_stock_objects(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    clang = plugin.toolchain.clang
    for problem, option in (("regalloc-eviction", "eviction"), ("regalloc-priority", "priority")):
        options = flags(command, "default", "--problem", problem)
        assert options[-1] == f"-nestor-{option}=default"
        assert built(folder, clang, *options) == built(folder, clang)
    assert flags(command, "default")[-1] == "-nestor-policy=default"


def test_without_optimisation_nothing_changes(command: Path, plugin: Plugin, folder: Path) -> None:
    options = flags(command, "e.safetensors", "p.safetensors", "--best", cwd=folder)
    clang = plugin.toolchain.clang
    assert built(folder, clang, *options, level="-O0") == built(folder, clang, level="-O0")


def test_what_clang_says_of_options_of_gcc_stays(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    words = ["-O2", "-fno-tree-vectorize", "-fira-loop-pressure", "-c", "x.c"]
    stock = run(plugin.toolchain.clang, *words, cwd=folder)
    options = flags(command, "e.safetensors", cwd=folder)
    done = run(plugin.toolchain.clang, *options, *words, cwd=folder)
    assert (done.returncode, done.stderr) == (stock.returncode, stock.stderr)


def test_the_best_is_never_worse_than_stock_or_a_policy(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    clang, log = plugin.toolchain.clang, folder / "costs"
    save_linear(folder / "f.safetensors", "regalloc-eviction", PICK.name, "position", -1.0)
    watch = ["-Xclang", "-mllvm", "-Xclang", f"-nestor-allocation-log={log}"]

    def cost(*words: str) -> float:
        built(folder, clang, *flags(command, *words, cwd=folder), *watch)
        line = next(line for line in log.read_text().splitlines() if '"mix"' in line)
        parts = line.partition('"cost":{')[2].split(",")[:3]  # instructions, reads, writes
        return sum(float(part.partition(":")[2]) for part in parts)

    alone = [cost("e.safetensors"), cost("f.safetensors"), cost("p.safetensors")]
    stock = cost("default", "--problem", "regalloc-eviction")
    every = ("e.safetensors", "f.safetensors", "p.safetensors", "--best")
    assert cost(*every) <= min(stock, *alone)
    assert max(alone) > stock, "there is something to keep off"
    assert cost("e.safetensors", "--best") <= stock


def test_overrides_are_told_apart_by_their_first_line(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    clang = plugin.toolchain.clang
    (folder / "inlining").write_text(OVERRIDES)
    (folder / "allocation").write_text(f"# a comment\n\n{ALLOCATION}")
    both = ("--overrides", "allocation", "--overrides", "inlining")
    options = [w.partition("=")[0] for w in flags(command, "never", *both, cwd=folder)]
    words = [word for word in options if word.startswith("-nestor")]
    assert words == ["-nestor-policy", "-nestor-overrides", "-nestor-allocation-overrides"]
    policy = flags(command, "e.safetensors", cwd=folder)
    before = built(folder, clang, *policy)
    assert before != built(folder, clang)
    function = _id_of(folder, clang, policy, "mix")
    (folder / "allocation").write_text(f"{ALLOCATION}function {function} stock\n")
    options = flags(command, "e.safetensors", "--overrides", "allocation", cwd=folder)
    assert built(folder, clang, *options) == built(folder, clang)
    (folder / "allocation").write_text(f"{ALLOCATION}function mix stock\n")
    done = run(command, "flags", "e.safetensors", "--overrides", "allocation", cwd=folder)
    assert done.returncode == 1
    assert "Line 2" in done.stderr


def _id_of(folder: Path, clang: Path, options: list[str], function: str) -> str:
    log = folder / "log"
    built(folder, clang, *options, "-Xclang", "-mllvm", "-Xclang", f"-nestor-allocation-log={log}")
    line = next(line for line in log.read_text().splitlines() if f'"{function}"' in line)
    return line.partition('"id":"')[2][:16]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("never shipped", "are for the same problem, inlining-size: name one of them."),
        ("shipped distilled shipped-speed", "same problem, inlining-size: name one of them."),
        ("first keep", "name one of them, or add --best, which keeps the best of them"),
        ("never --best", "--best needs a policy for regalloc-eviction or regalloc-priority."),
        ("never --problem regalloc-eviction", "None of the policies (never) is for"),
        ("default --problem none", "There is no problem 'none' that a build can leave"),
        ("first --summary s.txt", "--summary is for policies for inlining-size"),
        ("never --overrides x.c", "the first line is none of 'nestor-overrides 1', 'nestor-alloc"),
        ("never --overrides o --overrides o", "A compile takes one file of 'nestor-overrides 1'"),
        (
            "typo",
            "a built-in policy: default, shipped, shipped-lto, distilled, distilled-lto,"
            " mlgo2020, never",
        ),
        ("strange.safetensors", "is for hoisting, and a build can use policies for inlining-size"),
    ],
)
def test_wrong_use_gets_one_sentence(
    words: str, sentence: str, command: Path, folder: Path
) -> None:
    (folder / "o").write_text(OVERRIDES)
    save_linear(folder / "strange.safetensors", "hoisting", VALUE.name, "functions", 1.0)
    done = run(command, "flags", *words.split(), cwd=folder)
    assert done.returncode == 1
    assert len(done.stdout.split()) == 1
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


def test_an_installed_build_takes_several_policies(
    command: Path, plugin: Plugin, folder: Path
) -> None:
    (folder / "fixes").write_text(ALLOCATION)
    words = ("never", "e.safetensors", "p.safetensors", "--overrides", "fixes")
    options = flags(command, *words, cwd=folder)
    expected = built(folder, plugin.toolchain.clang, *options, level="-Oz")
    flags(command, *words, "--install", "in", cwd=folder)
    (folder / "fixes").unlink()
    (folder / "in").rename(folder / "moved")
    assert built(folder, folder / "moved" / "clang", level="-Oz") == expected
    assert len(list((folder / "moved").glob("policy-*"))) == 3
    _, missing, _ = sorted((folder / "moved").glob("policy-*"))
    missing.unlink()
    done = run(folder / "moved" / "clang", "-c", "x.c", cwd=folder)
    assert (done.returncode, "is missing" in done.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["full", "thin"])
def test_the_register_allocator_is_asked_in_the_link_under_lto(
    kind: str, command: Path, folder: Path
) -> None:
    words = ["-O2", f"-flto={kind}", "x.c", "-o"]
    programs = {}
    for name, compiler in (
        ("stock", "clang-22 -fuse-ld=lld"),
        ("flags", shlex.join(["clang-22", *flags(command, "e.safetensors", "--lto", cwd=folder)])),
        ("wrapper", f"{command} clang e.safetensors --"),
        ("best", f"{command} clang e.safetensors --best --"),
    ):
        done = run(*shlex.split(compiler), *words, name, cwd=folder)
        if (kind, name) == ("thin", "best"):
            assert (done.returncode, "use full LTO" in done.stderr) == (1, True)
            continue
        assert done.returncode == 0, done.stderr
        programs[name] = (folder / name).read_bytes()
    assert programs["flags"] == programs["wrapper"] != programs["stock"]
    if kind == "full":
        assert programs["best"] == programs["stock"], "evicting nothing is worse"


def test_an_installed_compiler_refuses_the_best_under_thin_lto(command: Path, folder: Path) -> None:
    flags(command, "e.safetensors", "--best", "--install", "in", cwd=folder)
    done = run("in/clang", "-O2", "-flto=thin", "x.c", "-o", "x", cwd=folder)
    assert (done.returncode, "use full LTO" in done.stderr) == (1, True)
    assert run("in/clang", "-O2", "-flto", "x.c", "-o", "x", cwd=folder).returncode == 0


def test_a_portfolio_file_needs_no_best(command: Path, plugin: Plugin, folder: Path) -> None:
    members = []
    for number, weight in enumerate((-1.0, 1.0)):
        path = folder / f"member{number}.safetensors"
        save_linear(path, "regalloc-eviction", PICK.name, "use_def_density", weight)
        member = bundle.load(path)
        assert isinstance(member, MlpPolicy)
        members.append(member)
    bundle.save(portfolio_of(members, {}), folder / "portfolio.safetensors")
    separate = ("member0.safetensors", "member1.safetensors", "--best")
    expected = built(folder, command, "clang", *separate, "--")
    for _ in range(2):  # The second time the copy in the cache is used.
        assert built(folder, command, "clang", "portfolio.safetensors", "--") == expected
        options = flags(command, "portfolio.safetensors", cwd=folder)
        assert built(folder, plugin.toolchain.clang, *options) == expected
    assert "--threads=1" in flags(command, "portfolio.safetensors", "--lto", cwd=folder)
    thin = ("-O2", "-flto=thin", "x.c", "-o", "x")
    done = run(command, "clang", "portfolio.safetensors", "--", *thin, cwd=folder)
    assert (done.returncode, "portfolios try functions" in done.stderr) == (1, True)


def test_flags_for_register_allocation_take_no_library(folder: Path) -> None:
    words = ["flags", str(folder / "e.safetensors"), str(folder / "p.safetensors"), "shipped"]
    imported(*words)  # the first use checks the policies and runs the identity gates
    assert not imported(*words, "--best") & (LIBRARIES | TERMINAL)


def test_a_packaged_policy_is_found_in_its_problem(
    folder: Path, plugin: Plugin, tmp_path: Path
) -> None:
    """The policies that ship may not be there yet: a copy of the package has stand-ins."""
    package = tmp_path / "copy" / "nestor"
    here = Path(nestor.__file__).parent
    shutil.copytree(here, package, copy_function=os.symlink)
    for problem, name in (("eviction", "e"), ("priority", "p")):
        data = package / "problems" / f"regalloc_{problem}" / "data"
        data.mkdir(exist_ok=True)
        packaged = data / f"shipped-{problem}.safetensors"
        packaged.unlink(missing_ok=True)
        shutil.copy(folder / f"{name}.safetensors", packaged)
    environment = os.environ | {"PYTHONPATH": str(package.parent)}

    def printed(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "nestor", *words],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    options = shlex.split(printed("flags", "shipped-eviction", "shipped-priority"))
    named = [Path(word.partition("=")[2]) for word in options if word.startswith("-nestor-")]
    expected = [(folder / f"{name}.safetensors").read_bytes() for name in "ep"]
    assert [path.read_bytes() for path in named] == expected
    assert built(folder, plugin.toolchain.clang, *options) != built(folder, plugin.toolchain.clang)
    text = printed("policy", "shipped-eviction")
    assert "regalloc-eviction" in text
    assert "l(is_own)" in text
