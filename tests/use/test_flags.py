"""``nestor flags``: options that follow contents, fail loudly, and can be installed."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nestor.compiler import plugin as plugins
from nestor.compiler.plugin import Plugin
from tests.conftest import SOURCE
from tests.use.conftest import save_policy

OVERRIDES = "nestor-overrides 1\ncallee 0123456789abcdef keep\n"
SUMMARY = "nestor-program 1\nlink gc\nfunction 0123456789abcdef 1 2 3 4 0\n"


def run(*words: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, cwd=cwd, check=False
    )


def flags(command: Path, *words: object, cwd: Path | None = None) -> list[str]:
    """Return the options that are printed."""
    done = run(command, "flags", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


def compiled(*command: object, cwd: Path) -> bytes:
    """Compile ``x.c`` and return the object."""
    done = run(*command, "-Oz", "-Werror", "-c", "x.c", "-o", "x.o", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return (cwd / "x.o").read_bytes()


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("option", ["", "--overrides", "--summary"])
def test_options_change_with_the_content_of_each_file(
    command: Path, tmp_path: Path, option: str
) -> None:
    file = tmp_path / ("p.safetensors" if not option else "text.txt")
    words = [file] if not option else ["distilled", option, file]

    def write(version: int) -> None:
        if not option:
            save_policy(file, inline=bool(version))
        else:
            file.write_text((OVERRIDES if option == "--overrides" else SUMMARY) + f"# {version}\n")

    write(0)
    first = flags(command, *words)
    assert not any(str(file) in word for word in first)
    write(1)
    second = flags(command, *words)
    assert second != first
    # What the first build was given stays, byte for byte.
    (before,) = (word for word in first if word not in second)
    write(0)
    assert flags(command, *words) == first
    assert Path(before.partition("=")[2]).read_bytes() == file.read_bytes()


@pytest.mark.usefixtures("plugin")
def test_ccache_sees_a_policy_that_changed(
    command: Path, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    (tmp_path / "x.c").write_text(SOURCE)
    policy, clang = tmp_path / "p.safetensors", plugin.toolchain.clang
    objects: dict[str, list[bytes]] = {"flags": [], "installed": []}
    for inline in (False, True, False):
        save_policy(policy, inline=inline)
        options = flags(command, policy)
        objects["flags"].append(compiled("ccache", clang, *options, cwd=tmp_path))
        flags(command, policy, "--install", tmp_path / "in")
        objects["installed"].append(compiled("ccache", tmp_path / "in" / "clang", cwd=tmp_path))
        expected = compiled(clang, *options, cwd=tmp_path)
        assert {made[-1] for made in objects.values()} == {expected}
    for made in objects.values():
        assert made[0] == made[2] != made[1]
    counts = run("ccache", "--print-stats").stdout
    assert re.search(r"direct_cache_hit\t1\n", counts), "the first policy's object came back"


@pytest.mark.usefixtures("plugin")
def test_a_mistake_fails_the_build_and_is_named(command: Path, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "Makefile").write_text("x.o: x.c\n\t$(CC) $(CFLAGS) -c x.c\n")
    for words, said in (
        ("typo", "There_is_no_policy_file_typo"),
        ("shipped --overrides none.txt", "none.txt_cannot_be_read"),
        ("shipped --summary Makefile", "This_is_no_summary"),
        ("shipped --llvm /none", "/none_is_no_LLVM_installation"),
        ("", "wrong_usage"),
        ("shipped --unknown", "wrong_usage"),
    ):
        shell = f'make CC=clang-22 CFLAGS="-Oz $({command} flags {words})"'
        done = run("sh", "-c", shell, cwd=tmp_path)
        assert done.returncode != 0, words
        assert re.search(f"unknown argument: '--nestor-flags-failed=.*{said}", done.stderr), words
        assert not (tmp_path / "x.o").exists()
        assert "Traceback" not in done.stderr
    alone = run(command, "flags", "typo")
    assert alone.returncode == 1
    assert len(alone.stdout.split()) == 1, "one word, whatever a shell does with it"
    assert "There is no policy file 'typo'" in alone.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("clang shipped -Oz -c x.c", "What clang gets follows '--': nestor clang shipped -- -Oz"),
        ("clang++ -Oz -- -c x.c", "'-Oz' is no option of 'nestor clang\\+\\+'"),
        ("clang -- -c x.c", "No policy is named"),
        ("clang shipped --lto -- -c x.c", "--lto is for 'nestor flags'"),
        ("flags shipped --level", "--level needs a value"),
        ("flags shipped --level=", "--level needs a value"),
        ("flags shipped --level -O2 --level=-O3", "--level is given twice"),
        ("flags shipped -- -O2", "Nothing follows '--' here"),
    ],
)
def test_wrong_words_are_named_in_a_sentence(command: Path, words: str, said: str) -> None:
    done = run(command, *words.split())
    assert done.returncode == 2
    assert re.fullmatch(f"nestor: {said}.* 'nestor [a-z+]+ --help' explains all.\n", done.stderr)
    assert ("--nestor-flags-failed=" in done.stdout) == words.startswith("flags")


def test_an_interrupt_is_no_stock_build(tmp_path: Path) -> None:
    script = (
        "from nestor.cli.use import command, use\n"
        "def stop(*_): raise KeyboardInterrupt\n"
        "command.find = stop\n"
        "use.flags('flags', ['shipped', '--lto'])\n"
    )
    environment = {"NESTOR_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout == "--nestor-flags-failed=interrupted\n"


@pytest.mark.usefixtures("plugin")
def test_an_installed_build_needs_no_cache_and_may_move(
    command: Path, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    (tmp_path / "fixes").write_text(OVERRIDES)
    folder = tmp_path / "a folder"
    cache = tmp_path / "cache"
    shutil.copytree(plugins.cache_folder() / "plugins", cache / "plugins")
    monkeypatch.setenv("NESTOR_CACHE", str(cache))
    words = ("never", "--overrides", "fixes")
    cached = flags(command, *words, cwd=tmp_path)
    expected = compiled(plugin.toolchain.clang, *cached, cwd=tmp_path)
    options = flags(command, *words, "--install", folder, cwd=tmp_path)
    assert str(cache) not in " ".join(options)
    shutil.rmtree(cache)
    (tmp_path / "fixes").unlink()
    assert compiled(plugin.toolchain.clang, *options, cwd=tmp_path) == expected
    assert compiled(folder / "clang", cwd=tmp_path) == expected
    moved = tmp_path / "moved"
    folder.rename(moved)
    assert compiled(moved / "clang", cwd=tmp_path) == expected
    assert compiled("../moved/clang", cwd=_link(tmp_path)) == expected
    (tmp_path / "cc").symlink_to(moved / "clang")
    assert compiled(tmp_path / "cc", cwd=tmp_path) == expected
    next(moved.glob("policy-*")).unlink()
    done = run(moved / "clang", "-c", "x.c", cwd=tmp_path)
    assert done.returncode == 1
    assert "is missing; write it again by: nestor flags never" in done.stderr


def _link(folder: Path) -> Path:
    """Return a folder beside the sources that has them too."""
    other = folder / "other"
    other.mkdir()
    (other / "x.c").write_text(SOURCE)
    return other


@pytest.mark.usefixtures("plugin")
def test_an_installed_compiler_decides_in_the_link_under_lto(command: Path, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    flags(command, "never", "--install", tmp_path / "in")
    words = ["-Oz", "-flto", "-Werror", "x.c", "-o"]
    for compiler, out in ((tmp_path / "in" / "clang", "a"), (f"{command} clang never --", "b")):
        done = run("sh", "-c", f"{compiler} {shlex.join([*words, out])}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    made = (tmp_path / "a").read_bytes()
    assert made == (tmp_path / "b").read_bytes()
    run("clang-22", "-fuse-ld=lld", *words, "c", cwd=tmp_path)
    assert made != (tmp_path / "c").read_bytes()
    (tmp_path / "s.txt").write_text(SUMMARY)
    flags(command, "distilled", "--summary", "s.txt", "--install", "with", cwd=tmp_path)
    done = run("with/clang", *words, "d", cwd=tmp_path)
    assert done.returncode == 1
    assert "leave --summary out" in done.stderr


@pytest.mark.usefixtures("plugin")
def test_installing_again_changes_nothing(command: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    flags(command, "never", "--install", folder)
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    flags(command, "never", "--install", folder)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    next(folder.glob("policy-*")).write_text("damaged")
    flags(command, "never", "--install", folder)
    assert run(folder / "clang", "-c", "-x", "c", "/dev/null", cwd=tmp_path).returncode == 0
    (tmp_path / "file").touch()
    done = run(command, "flags", "never", "--install", tmp_path / "file")
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


@pytest.mark.usefixtures("plugin")
def test_a_relative_cache_gives_absolute_options(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").symlink_to(plugins.cache_folder())
    monkeypatch.setenv("NESTOR_CACHE", "cache")
    named = [w.partition("=")[2] for w in flags(command, "never", cwd=tmp_path) if "=" in w]
    assert len(named) == 2
    assert all(Path(path).is_absolute() and Path(path).is_file() for path in named)
    monkeypatch.delenv("NESTOR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert plugins.cache_folder() == Path.home() / ".cache" / "nestor"


def test_a_first_build_of_the_plugin_is_announced(
    command: Path, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CMake is stopped when it starts: the line comes before the half minute, not after it."""
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    cmake = command.with_name("cmake")
    cmake.write_text("#!/bin/sh\necho 'an error that the test makes'\nexit 1\n")
    cmake.chmod(0o755)
    done = run(command, "flags", "shipped")
    line, reason = done.stderr.splitlines()
    version = plugin.toolchain.version
    assert line == f"nestor: Building the plugin for clang {version} (some 20 seconds, once) …"
    assert "an error that the test makes" in reason
    assert done.stdout.startswith("--nestor-flags-failed=The_plugin_could_not_be_built")


@pytest.mark.usefixtures("plugin")
def test_a_policy_of_another_level_is_refused(command: Path) -> None:
    there = {"-O2": "shipped-speed", "-O3": "shipped-speed", "-Os": "shipped-os"}
    for level, other in there.items():
        refused = run(command, "flags", "shipped", "--level", level)
        assert refused.returncode != 0
        end = f"at {level} it would decide nothing; {other} decides there."
        assert f"decided at -Oz: {end}" in refused.stderr
        assert refused.stdout.startswith("--nestor-flags-failed=")
    nobody = run(command, "flags", "shipped", "--level", "-O1")
    assert "decided at -Oz: at -O1 it would decide nothing.\n" in nobody.stderr
    misspelt = run(command, "flags", "shipped", "--level", "-02")
    assert "'-02' is no level of optimisation" in misspelt.stderr


LEVELS = {"shipped": "-Oz", "shipped-os": "-Os", "shipped-speed": "-O2"}


def test_policies_of_several_levels_work_together(
    command: Path, plugin: Plugin, tmp_path: Path
) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    clang = plugin.toolchain.clang
    together = flags(command, *LEVELS)
    for policy, level in LEVELS.items():
        assert flags(command, *LEVELS, "--level", level) == together
        assert flags(command, *LEVELS, f"--level={level}") == together
        alone = flags(command, policy)
        expected = compiled(clang, *alone, level, cwd=tmp_path)
        assert compiled(clang, *together, level, cwd=tmp_path) == expected
    refused = run(command, "flags", *LEVELS, "--level", "-O1")
    assert "The policy shipped is for inlining-size, which is decided at -Oz" in refused.stderr


@pytest.mark.usefixtures("plugin")
def test_a_level_at_which_the_policies_decide_changes_nothing(command: Path) -> None:
    for policy, level in (("shipped", "-Oz"), ("shipped-eviction", "-O2"), ("default", "-O3")):
        assert flags(command, policy, "--level", level) == flags(command, policy)
