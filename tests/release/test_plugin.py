"""A released plugin decides by what it carries, in whatever way a build takes it."""

import multiprocessing
import os
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from nestor.compiler.invocation import compile_command, link_flags
from nestor.compiler.plugin import Plugin, parts_path, source_folder
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.registry import find_policy
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.release.forms import Released, ReleaseSettings, release_plugin
from nestor.release.in_tree import ReleaseError
from nestor.release.packages import debian_package, is_of_debian
from nestor.release.plugin import build_plugin, levels_in_words, usual_level
from tests.conftest import SOURCE

NAME = "lean"
# The first changes every object that has calls.
POLICIES = ("never", "shipped-eviction")


def named(name: str) -> NamedPolicy:
    return find_policy(name, ["inlining-size", "regalloc-eviction"])[1]


@dataclass(frozen=True)
class Prefix:
    """A release and what it was made of."""

    released: Released
    root: Path
    plugin: Plugin
    policies: tuple[NamedPolicy, ...]
    file: Path
    """The first policy's."""

    def find(self, pattern: str) -> Path:
        (found,) = self.root.glob(pattern)
        return found


@pytest.fixture(scope="session")
def prefix(plugin: Plugin, tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    root = tmp_path_factory.mktemp("prefix")
    policies = tuple(map(named, POLICIES))
    settings = ReleaseSettings(name=NAME, version="1.2")
    released = release_plugin(policies, root, plugin, settings)
    file = tmp_path_factory.mktemp("file") / "policy.safetensors"
    file.write_bytes(policies[0].data)
    return Prefix(released, root, plugin, policies, file)


def compiled(command: list[str | Path], source: Path) -> bytes:
    result = source.with_suffix(".o")
    subprocess.run([*command, "-c", source, "-o", result], check=True)
    return result.read_bytes()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "small.c"
    path.write_text(SOURCE)
    return path


@pytest.mark.corpus
def test_objects_are_those_of_the_policy_file(
    prefix: Prefix, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    eviction = tmp_path / "eviction.safetensors"
    eviction.write_bytes(prefix.policies[1].data)
    by_file = [*plugin_flags(prefix.plugin, prefix.file), "-mllvm", f"-nestor-eviction={eviction}"]
    # The tiny corpus is compiled at -Oz, where both policies act.
    for module in tiny_corpus.modules[::3]:
        objects = []
        for flags in (by_file, prefix.released.compile_flags):
            result = tmp_path / "module.o"
            bitcode = tiny_corpus.bitcode(module)
            command = compile_command(
                prefix.plugin.toolchain, module.options, bitcode, result, flags
            )
            subprocess.run(command, check=True)
            objects.append(result.read_bytes())
        assert objects[0] == objects[1], module.name


def test_an_option_overrules_what_it_carries(prefix: Prefix, source: Path) -> None:
    clang: list[str | Path] = [prefix.plugin.toolchain.clang, "-Oz"]
    stock = compiled(clang, source)
    carried = compiled([*clang, *prefix.released.compile_flags], source)
    options = ["-nestor-policy=default", "-nestor-eviction=default"]
    words = [word for option in options for word in ("-Xclang", "-mllvm", "-Xclang", option)]
    assert compiled([*clang, *prefix.released.compile_flags, *words], source) == stock != carried


def test_a_configuration_file_of_clang(prefix: Prefix, source: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(prefix.root, moved)
    clang: list[str | Path] = [prefix.plugin.toolchain.clang, "-Oz"]
    expected = compiled([*clang, *prefix.released.compile_flags], source)
    assert compiled([*clang, f"--config={moved}/lib/nestor/{NAME}.cfg"], source) == expected


def test_a_release_for_an_older_llvm(older_plugin: Plugin, source: Path, tmp_path: Path) -> None:
    """It parses options before it loads plugins, so that a plugin must not depend on any."""
    released = release_plugin((named("never"),), tmp_path / "out", older_plugin)
    clang: list[str | Path] = [older_plugin.toolchain.clang, "-Oz"]
    stock = compiled(clang, source)
    assert compiled([*clang, *released.compile_flags], source) != stock


def test_a_link_by_lto(prefix: Prefix, source: Path, tmp_path: Path) -> None:
    clang: list[str | Path] = [prefix.plugin.toolchain.clang, "-Oz", "-flto"]
    (source.with_suffix(".bc")).write_bytes(compiled(clang, source))
    eviction = tmp_path / "eviction.safetensors"
    eviction.write_bytes(prefix.policies[1].data)
    options = [f"-nestor-policy={prefix.file}", f"-nestor-eviction={eviction}"]
    programs = []
    for flags in (
        [f"--config={prefix.root}/lib/nestor/{NAME}-lto.cfg"],
        list(prefix.released.link_flags),
        ["-fuse-ld=lld", *link_flags(prefix.plugin, options)],
        ["-fuse-ld=lld"],
    ):
        program = tmp_path / "program"
        subprocess.run([*clang, *flags, source.with_suffix(".bc"), "-o", program], check=True)
        programs.append(program.read_bytes())
    assert programs[0] == programs[1] == programs[2] != programs[3]


def cmake(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["cmake", "-S", str(folder), "-B", str(folder / "build"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_cmake_package(prefix: Prefix, source: Path) -> None:
    folder, toolchain = source.parent, prefix.plugin.toolchain
    (folder / "CMakeLists.txt").write_text(
        f"""
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(nestor-{NAME} 1.1 REQUIRED)
add_library(app OBJECT small.c)
target_link_libraries(app PRIVATE nestor::{NAME})
install(FILES $<TARGET_OBJECTS:app> DESTINATION . RENAME app.o)
"""
    )
    place = f"-DCMAKE_PREFIX_PATH={prefix.root}"
    done = cmake(folder, place, f"-DCMAKE_C_COMPILER={toolchain.clang}", "-DCMAKE_C_FLAGS=-Oz")
    assert done.returncode == 0, done.stderr
    subprocess.run(["cmake", "--build", folder / "build"], check=True, capture_output=True)
    (built,) = (folder / "build").rglob("small.c.o")
    flags = prefix.released.compile_flags
    assert built.read_bytes() == compiled([toolchain.clang, "-Oz", *flags], source)
    shutil.rmtree(folder / "build")
    done = cmake(folder, place, "-DCMAKE_C_COMPILER=gcc")
    assert done.returncode != 0
    assert f"the plugin is for Clang {toolchain.major}" in " ".join(done.stderr.split())


def test_a_debian_package(prefix: Prefix, tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None or not is_of_debian(prefix.plugin.toolchain):
        pytest.skip("needs dpkg-deb and an LLVM of Debian's packages")
    package = prefix.find("*.deb")
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg", "-x", package, unpacked], check=True)
    for path in (prefix.root / "lib").rglob("*"):
        if path.is_file():
            assert (unpacked / "usr" / path.relative_to(prefix.root)).read_bytes() == (
                path.read_bytes()
            )
    fields = subprocess.run(
        ["dpkg-deb", "--field", package], check=True, capture_output=True, text=True
    ).stdout
    major = prefix.plugin.toolchain.major
    assert f"Package: nestor-{NAME}-llvm{major}\nVersion: 1.2\n" in fields
    assert f"Depends: libllvm{major}\n" in fields


def test_a_debian_package_comes_and_goes(prefix: Prefix, tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None or not is_of_debian(prefix.plugin.toolchain):
        pytest.skip("needs dpkg-deb and an LLVM of Debian's packages")
    if os.geteuid() != 0:
        pytest.skip("only root may install packages")
    root = tmp_path / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", f"--log={tmp_path}/log"]
    subprocess.run([*dpkg, "--install", prefix.find("*.deb")], check=True, capture_output=True)
    assert list((root / "usr/lib/nestor").glob("*.plugin"))
    name = f"nestor-{NAME}-llvm{prefix.plugin.toolchain.major}"
    subprocess.run([*dpkg, "--remove", name], check=True, capture_output=True)
    assert not (root / "usr/lib/nestor").exists()


def _carrying(toolchain: Toolchain) -> bytes:
    return build_plugin(toolchain, [named(name) for name in POLICIES])


def test_bytes_do_not_depend_on_place_time_and_cache(
    prefix: Prefix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes find a damaged cache: one compiles the plugin anew, and the other waits for it.

    From then on the cache is whole, and there is only a link.
    """
    toolchain, expected = prefix.plugin.toolchain, prefix.find("lib/nestor/*.plugin").read_bytes()
    parts = parts_path(toolchain).read_bytes()
    elsewhere, log = tmp_path / "a folder with another name", tmp_path / "log"
    wrapper = tmp_path / "bin" / "cmake"
    for folder in (elsewhere, wrapper.parent):
        folder.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec "{shutil.which("cmake")}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    damaged = parts_path(toolchain)
    damaged.parent.mkdir(parents=True)
    shutil.copy(prefix.plugin.path, damaged.parent)
    damaged.write_bytes(parts[:1000])
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        assert list(processes.map(_carrying, [toolchain] * 2, timeout=600)) == [expected] * 2
    assert damaged.stat().st_size == len(parts), "mended"
    assert _carrying(toolchain) == expected
    configured = [line for line in log.read_text().splitlines() if line.startswith("-S ")]
    compiled = ["-DNESTOR_PARTS=" not in line for line in configured]
    assert sum(compiled) == 1 and not compiled[-1]
    assert str(prefix.root).encode() not in expected and b"nestor-run-" not in expected


def test_all_files_are_the_same_a_second_time(prefix: Prefix, tmp_path: Path) -> None:
    release_plugin(prefix.policies, tmp_path, prefix.plugin, ReleaseSettings(NAME, "1.2"))
    for path in prefix.released.files:
        own = path.relative_to(prefix.root)
        assert (tmp_path / own).read_bytes() == path.read_bytes()


def test_no_package_without_the_tool(prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert debian_package({}, None, prefix.plugin.toolchain) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policies", "settings", "why"),
    [
        ([DEFAULT], {}, "a build without a plugin has it"),
        (["never", "always"], {}, "never and always are for the same problem, inlining-size"),
        (["never"], {"name": "../x"}, "cannot be the name of a package"),
        (["never"], {"version": "1;rm"}, "cannot be the version of a package"),
    ],
)
def test_refused(
    plugin: Plugin,
    tmp_path: Path,
    policies: list[NamedPolicy | str],
    settings: dict[str, str],
    why: str,
) -> None:
    found = [named(each) if isinstance(each, str) else each for each in policies]
    with pytest.raises(ReleaseError, match=why):
        release_plugin(found, tmp_path / "out", plugin, ReleaseSettings(**settings))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("names", "words", "level"),
    [
        ("shipped", "-Oz", "-Oz"),
        ("shipped-os", "-Os", "-Os"),
        ("shipped-speed", "-O2 and -O3", "-O2"),
        ("shipped-eviction", "-O1 and above", "-O2"),
        ("shipped-eviction never", "-O1 and above (regalloc-eviction), -Oz (inlining-size)", "-Oz"),
    ],
)
def test_a_package_says_at_which_levels_its_policies_decide(
    names: str, words: str, level: str
) -> None:
    problems = ["inlining-size", "inlining-size-os", "inlining-speed", "regalloc-eviction"]
    policies = [find_policy(name, problems)[1] for name in names.split()]
    assert (levels_in_words(policies), usual_level(policies)) == (words, level)


def test_a_plugin_carries_policies_for_several_levels(plugin: Plugin, tmp_path: Path) -> None:
    problems = ["inlining-size", "inlining-size-os", "inlining-speed"]
    names = ("shipped", "shipped-os", "shipped-speed")
    policies = [find_policy(name, problems)[1] for name in names]
    release_plugin(policies, tmp_path / "out", plugin)
    (carried,) = (tmp_path / "out").glob("lib/nestor/*.plugin")
    clang, source = plugin.toolchain.clangxx, source_folder() / "identity" / "probe.cpp"
    for named, level in zip(policies, ("-Oz", "-Os", "-O2"), strict=True):
        file = tmp_path / "one.safetensors"
        file.write_bytes(named.data)
        by_file = plugin.driver_words([f"-nestor-policy={file}"])
        objects = []
        for words in (by_file, [f"-fpass-plugin={carried}"]):
            out = tmp_path / "probe.o"
            line = [str(clang), level, *words, "-c", str(source), "-o", str(out)]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
            assert done.stderr == ""
            objects.append(out.read_bytes())
        assert objects[0] == objects[1], level
