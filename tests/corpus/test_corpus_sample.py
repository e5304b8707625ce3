"""Draws of source packages from a small index."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.corpus.packages.index import PackageIndexError, has_lists, read_index
from nestor.corpus.packages.sample import SampleSettings, draw, packages_seen_in_training


def _source(name: str, size: int, depends: str = "debhelper", architecture: str = "any") -> str:
    return (
        f"Package: {name}\nBinary: {name},\n lib{name}\nVersion: 1-1\n"
        f"Build-Depends: {depends},\n other (>= 2) [amd64] <!nocheck>\n"
        f"Architecture: {architecture}\nChecksums-Sha1:\n 00 999 {name}.dsc\n"
        f"Checksums-Sha256:\n 00 1000 {name}.dsc\n 00 {size - 1000} {name}.tar.xz\n"
        "Directory: pool\n"
    )


def _binary(name: str, depends: str, source: str = "", architecture: str = "amd64") -> str:
    own = f"Source: {source}\n" if source else ""
    return f"Package: {name}\n{own}Architecture: {architecture}\nDepends: {depends}\n"


def _lists(folder: Path, sources: Sequence[str], binaries: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stable_main_Sources").write_text("\n".join(sources))
    (folder / "stable_main_Packages").write_text("\n".join(binaries))
    return folder


CXX, C = "libc6 (>= 2.3), libstdc++6 (>= 4)", "libc6 (>= 2.3) | libc6-udeb"


def test_the_language_is_that_of_the_built_packages(tmp_path: Path) -> None:
    sources = [
        _source("clean", 30_000),
        _source("plusplus", 40_000),
        _source("rusty", 30_000, "cargo:native"),
        _source("script", 30_000, architecture="all"),
        _source("unbuilt", 30_000),
        _source("plusplus", 39_000),  # an older version
    ]
    binaries = [
        _binary("clean", C),
        _binary("plusplus-data", "perl", "plusplus", "all"),
        _binary("libplusplus", C, "plusplus (1-1+b2)"),
        _binary("plusplus", CXX),
        _binary("rusty", C),
        _binary("script", CXX),
        _binary("clean-doc", CXX, "clean", "all"),
    ]
    index = read_index(_lists(tmp_path, sources, binaries))
    assert {p.name: (p.language, p.bytes) for p in index.packages} == {
        "clean": ("c", 30_000),
        "plusplus": ("c++", 40_000),
        "rusty": (None, 30_000),
        "script": (None, 30_000),
        "unbuilt": (None, 30_000),
    }
    with pytest.raises(PackageIndexError, match="no lists"):
        read_index(tmp_path / "none")


def _many(folder: Path, names: Sequence[str]) -> Path:
    sources = [_source(name, 30_000) for name in names]
    return _lists(folder, sources, [_binary(name, CXX) for name in names])


def test_a_draw_is_repeatable_and_grows(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(60)]
    index = read_index(_many(tmp_path / "one", names))

    def drawn(seed: int, count: int, excluded: Sequence[str] = ()) -> list[str]:
        sample = draw(index, SampleSettings(seed, count), excluded)
        return [one.package.name for one in sample.drawn]

    first = drawn(1, 20)
    assert drawn(1, 20) == first
    assert drawn(1, 30)[:20] == first
    assert drawn(2, 20) != first
    assert first != sorted(first)
    assert drawn(1, 20, [first[3]])[:19] == [*first[:3], *first[4:]]
    # A package that leaves the archive moves no other, and is seen in the digest.
    less = read_index(_many(tmp_path / "two", [name for name in names if name != first[0]]))
    sample = draw(less, SampleSettings(1, 19), ())
    assert [one.package.name for one in sample.drawn] == first[1:20]
    assert sample.index != index.digest
    halves = {one.package.name: one.half for one in draw(index, SampleSettings(1, 60), ()).drawn}
    assert {one.package.name: one.half for one in sample.drawn}.items() <= halves.items()
    assert 15 < sum(half == "final" for half in halves.values()) < 45


def test_limits_and_languages(tmp_path: Path) -> None:
    sources = [_source("small", 19_000), _source("large", 2_000_001), _source("fits", 20_000)]
    sources += [_source("plain", 2_000_000)]
    binaries = [_binary(name, CXX) for name in ("small", "large", "fits")] + [_binary("plain", C)]
    index = read_index(_lists(tmp_path, sources, binaries))
    for language, expected in (("both", {"fits", "plain"}), ("c++", {"fits"}), ("c", {"plain"})):
        sample = draw(index, SampleSettings(language=language), ())  # type: ignore[arg-type]
        assert {one.package.name for one in sample.drawn} == expected
        assert sample.candidates == len(expected)


def test_what_training_has_seen_is_left_out() -> None:
    seen = packages_seen_in_training()
    assert {"zlib", "bzip2", "ninja-build"} & seen == {"zlib", "bzip2"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = str(_many(tmp_path, [*(f"p{number}" for number in range(20)), "zlib"]))
    assert has_lists(tmp_path)
    words = ["corpus", "sample", "--index", lists, "--seed", "3", "--count", "50"]
    assert main([*words, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    names = [package["name"] for package in content["packages"]]
    assert len(names) == content["candidates"] == 20
    assert "zlib" not in names
    assert content["index"] == read_index(tmp_path).digest
    assert main([*words, "--half", "final"]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == [p["name"] for p in content["packages"] if p["half"] == "final"]
    assert main([*words, "--least-kb", "500"]) == 1
