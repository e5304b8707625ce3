"""The user's way: plain clang, with nestor's words for the link."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nestor.cli.setup import usual_policy
from nestor.compiler.invocation import LtoKind, link_flags
from nestor.compiler.plugin import Plugin
from nestor.problem.in_builds import made_for, search_starts
from nestor.problems.inlining_size.log import read
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from tests.inlining import KINDS, PROBLEM, policy_named


def policy_file(name: str, folder: Path) -> Path:
    """Return a file with a built-in policy."""
    path = folder / f"{name}.safetensors"
    path.write_bytes(policy_named(name).data)
    return path


def nestor(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nestor", *words], capture_output=True, text=True, check=check
    )


def link(plugin: Plugin, sources: Path, kind: LtoKind, out: Path, flags: list[str]) -> bytes:
    """Compile and link in one command, as ``make`` would in several."""
    files = [str(path) for path in sorted(sources.glob("*.cpp"))]
    base = [str(plugin.toolchain.clangxx), "-Oz", f"-flto={kind}", "-fuse-ld=lld"]
    subprocess.run([*base, *flags, *files, "-o", str(out)], check=True, capture_output=True)
    return out.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_flags_for_a_link(plugin: Plugin, sources: Path, tmp_path: Path, kind: LtoKind) -> None:
    stock = link(plugin, sources, kind, tmp_path / "p", [])
    idle = [f"-Wl,--load-pass-plugin={plugin.path}"]
    assert link(plugin, sources, kind, tmp_path / "p", idle) == stock
    for policy, same in (("default", True), ("never", False)):
        flags = nestor("flags", policy, "--lto").stdout.split()
        made = link(plugin, sources, kind, tmp_path / "p", flags)
        assert (made == stock) == same
    ran = subprocess.run([str(tmp_path / "p")], capture_output=True, text=True, check=True)
    assert ran.stdout.strip().lstrip("-").isdigit()


@pytest.mark.parametrize("kind", KINDS)
def test_the_wrapper_decides_in_the_link(
    plugin: Plugin, sources: Path, tmp_path: Path, kind: LtoKind
) -> None:
    """Compiles of their own under the wrapper are stock, so both ways make one program."""
    flags = link_flags(plugin, plugin_flags(plugin, policy_file("never", tmp_path)))
    expected = link(plugin, sources, kind, tmp_path / "p", flags)
    objects = []
    for source in sorted(sources.glob("*.cpp")):
        out = tmp_path / f"{source.stem}.o"
        words = ["-Oz", f"-flto={kind}", "-c", str(source), "-o", str(out)]
        done = nestor("clang++", "never", "--", *words)
        assert done.stderr == "", "no warning about the linker's options"
        objects.append(str(out))
    nestor("clang++", "never", "--", "-Oz", f"-flto={kind}", *objects, "-o", str(tmp_path / "q"))
    made = (tmp_path / "q").read_bytes()
    assert len(made) == len(expected)
    stock = link(plugin, sources, kind, tmp_path / "p", [])
    assert len(made) != len(stock)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_link_has_tried_is_kept(
    plugin: Plugin, sources: Path, tmp_path: Path, kind: LtoKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = nestor("flags", "distilled-lto", "--lto").stdout.split()
    (kept,) = re.findall(r"-nestor-trials=(\S+)", " ".join(flags))
    before = set(Path(kept).glob("*"))
    first = link(plugin, sources, kind, tmp_path / "p", flags)
    new = sorted(set(Path(kept).glob("*")) - before)
    texts = [path.read_text() for path in new]
    assert new
    assert link(plugin, sources, kind, tmp_path / "p", flags) == first
    assert [path.read_text() for path in new] == texts
    nowhere = [word.replace(kept, "/proc/none") for word in flags]
    assert link(plugin, sources, kind, tmp_path / "p", nowhere) == first
    for policy, options in (("shipped-lto", ["--lto"]), ("distilled-lto", [])):
        assert "-nestor-trials" not in nestor("flags", policy, *options).stdout


def test_a_policy_made_for_other_links_is_remarked_on(sources: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.txt"  # a command with a file of its own is not remembered
    nothing.write_text("nestor-overrides 1\n")
    words = ["--overrides", str(nothing), "--", "-Oz", "-c", str(sources / "a.cpp")]
    words += ["-o", str(tmp_path / "a.o")]
    there, here = "shipped changes nothing inside LTO", "shipped-lto is made for links by LTO"
    for name, options, said in (
        ("shipped", ["-flto"], there),
        ("shipped-lto", [], here),
        ("shipped", [], ""),
        ("shipped-lto", ["-flto=thin"], ""),
        (
            "distilled-lto",
            [],
            "distilled-lto is made for links by LTO: without -flto use distilled",
        ),
        ("distilled-lto", ["-flto"], ""),
        ("shipped-speed", ["-O2", "-flto"], "shipped-speed was made without LTO: inside it code"),
        ("shipped-os", ["-Os", "-flto"], "shipped-os was made without LTO: what it does"),
        ("shipped-speed", ["-O2"], ""),
    ):
        done = nestor("clang++", name, *words, *options)
        assert said in done.stderr and bool(said) == bool(done.stderr)
    for name, options, said in (("shipped", ["--lto"], there), ("shipped-lto", [], here)):
        done = nestor("flags", name, "--overrides", str(nothing), *options)
        assert said in done.stderr and "nestor" in done.stdout
    own = ["--overrides", str(nothing), "--lto"]
    done = nestor("flags", "shipped", "shipped-os", "shipped-speed", *own)
    assert done.stderr.count("\n") == 3, "one sentence about each"


def test_searches_and_defaults_take_the_policy_for_the_build() -> None:
    assert made_for(("shipped", "distilled"), lto=True) == ("shipped-lto", "distilled")
    assert made_for(("shipped", "distilled"), lto=False) == ("shipped", "distilled")
    inside = ("shipped-lto", "distilled", "distilled-lto")
    assert search_starts(("shipped", "distilled"), lto=True) == inside
    assert search_starts(("shipped", "distilled"), lto=False) == ("shipped", "distilled")
    assert usual_policy(PROBLEM, lto=True) == "shipped-lto"
    assert usual_policy(PROBLEM) == "shipped"


def test_thin_lto_on_several_threads(plugin: Plugin, sources: Path, tmp_path: Path) -> None:
    """Each back end has a log of its own, and the threads change nothing."""
    policy = policy_file("threshold:40", tmp_path)
    made, logged = set(), []
    for jobs in (1, 4):
        logs = tmp_path / f"logs{jobs}"
        logs.mkdir()
        flags = link_flags(plugin, plugin_flags(plugin, policy, log=logs))
        made.add(
            link(plugin, sources, "thin", tmp_path / "p", [*flags, f"-Wl,--thinlto-jobs={jobs}"])
        )
        logged.append(sorted(read(path).decisions.tobytes() for path in logs.iterdir()))
    assert len(made) == 1
    assert logged[0] == logged[1] and len(logged[0]) > 1


def test_mistakes_have_one_sentence(sources: Path, tmp_path: Path) -> None:
    for words, said in (
        (["flags", "no-such-policy", "--lto"], "no-such-policy"),
        (["flags", "never", "--lto", "--overrides", str(tmp_path / "none")], "cannot be read"),
        (["flags", "never", "--lto", "--summary", str(tmp_path)], "leave --summary out"),
    ):
        done = nestor(*words, check=False)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert nestor("clang", "never", "--lto", "--", "-c", "x.c", check=False).returncode == 2
