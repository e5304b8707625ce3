"""Finding LLVM: what is there is described, what is not gives one clear sentence."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from nestor.compiler import plugin
from nestor.compiler.releases import (
    ABILITIES,
    FUNCTION_LOG,
    MAIN_RELEASE,
    REGISTER_ALLOCATION,
    VOCABULARIES,
    Ability,
    by_preference,
)
from nestor.compiler.toolchain import Toolchain, ToolchainError, capabilities, discover, find


def test_found_and_able(toolchain: Toolchain) -> None:
    assert toolchain.version.startswith("22.")
    assert toolchain.clang.exists()
    assert capabilities(toolchain).problem() is None
    assert {"inliner", "regalloc-evict"} <= set(capabilities(toolchain).channels)


@pytest.mark.parametrize("what", ["prefix", "bin", "clang"])
def test_named_by_prefix_bin_or_compiler(toolchain: Toolchain, what: str) -> None:
    places = {
        "prefix": toolchain.prefix,
        "bin": toolchain.prefix / "bin",
        "clang": toolchain.prefix / "bin" / "clang",
    }
    assert find(str(places[what])) == toolchain


def test_environment_names_one(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NESTOR_LLVM", str(toolchain.prefix))
    assert discover() == [toolchain]


def test_what_is_preferred_to_all_others_is_the_only_one_started(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _impostor(tmp_path, "19.1.7") / "bin" / "clang"
    other.write_text(f"{other.read_text()}touch {tmp_path}/started\n")
    (other.parent / f"clang-{MAIN_RELEASE}").symlink_to(toolchain.clang)
    monkeypatch.setenv("PATH", f"{other.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("NESTOR_LLVM", raising=False)
    assert find() == toolchain
    assert not (tmp_path / "started").exists()
    found = discover()
    assert (found[0], found[-1].major) == (toolchain, 19)
    assert (tmp_path / "started").exists()


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"install LLVM 22.*apt-get install clang-22"):
        find(str(tmp_path))


def _impostor(folder: Path, version: str) -> Path:
    """Write a script that says it is a clang."""
    clang = folder / "bin" / "clang"
    clang.parent.mkdir(parents=True)
    clang.write_text(f'#!/bin/sh\necho "clang version {version}"\n')
    clang.chmod(0o755)
    return folder


def test_other_release_is_refused_with_its_version(tmp_path: Path) -> None:
    for release in ("14.0.6", "18.1.8", "24.0.0"):
        with pytest.raises(
            ToolchainError,
            match=rf"LLVM {release} is refused, .* written for LLVM 19 to 23: install LLVM 22",
        ):
            find(str(_impostor(tmp_path / release, release)))


@pytest.mark.parametrize(
    ("release", "support", "lacks"),
    [
        ("19.1.7", "tested", ABILITIES),
        ("20.1.8", "expected", ABILITIES),
        ("21.1.0", "expected", (REGISTER_ALLOCATION, FUNCTION_LOG, VOCABULARIES)),
        ("22.1.8", "tested", ()),
        ("23.1.0", "expected", ()),
        ("24.1.0", "refused", ()),
    ],
)
def test_each_release_says_how_well_it_is_supported(
    tmp_path: Path, release: str, support: str, lacks: tuple[Ability, ...]
) -> None:
    (found,) = discover(str(_impostor(tmp_path, release)))
    abilities = capabilities(found)
    assert (abilities.support, abilities.lacks) == (support, tuple(a.name for a in lacks))
    for ability in ABILITIES:
        if ability in lacks:
            with pytest.raises(ToolchainError, match=f"LLVM {release} .* lacks {ability.name}"):
                found.require(ability)
        else:
            found.require(ability)


def test_tested_releases_come_first() -> None:
    order = sorted([14, 19, 20, 21, 22, 23, 24], key=by_preference)
    assert order == [22, 19, 23, 21, 20, 24, 14]


def test_a_name_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = _impostor(tmp_path, "19.1.7") / "bin" / "clang"
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "clang-19").symlink_to(clang)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    assert find("clang-19").clang == clang
    assert find("19").clang == clang


def test_a_home_folder_of_nobody() -> None:
    with pytest.raises(ToolchainError, match="'~nobody-here/x' names the home folder of nobody"):
        find("~nobody-here/x")


def test_missing_headers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    bare = find(str(_impostor(tmp_path / "llvm", "22.1.8")))
    with pytest.raises(ToolchainError, match="development files are missing"):
        plugin.ensure_plugin(bare)


def test_build_id_follows_the_compiler(tmp_path: Path) -> None:
    one = find(str(_impostor(tmp_path / "a", "22.1.8")))
    two = find(str(_impostor(tmp_path / "b", "22.1.9")))
    assert one.build_id != two.build_id
    assert plugin.plugin_path(one) != plugin.plugin_path(two)


def test_build_failure_is_one_sentence(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "sources"
    for folder in ("plugin", "policy"):
        shutil.copytree(plugin.source_folder() / folder, sources / folder)
    (sources / "policy" / "Policy.cpp").write_text("this is no C++")
    monkeypatch.setattr(plugin, "source_folder", lambda: sources)
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ToolchainError, match=r"could not be built for LLVM 22.*error"):
        plugin.ensure_plugin(toolchain)
    assert not list((tmp_path / "cache").rglob(plugin.FILE_NAME))


def test_without_cmake(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="install the package cmake"):
        plugin.ensure_plugin(dataclasses.replace(toolchain))


def test_cache_folder_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NESTOR_CACHE", os.devnull)
    assert plugin.cache_folder() == Path(os.devnull)
