"""The Debian archive: apt's entries, mirrors that do not have the sources, hostile tarballs."""

import hashlib
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from nestor.corpus.fetch.debian import Archive, DebianError, extract, source_entries
from tests.corpus.conftest import tarball


def test_entries_are_the_systems_own_turned_to_sources(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://commented.example/debian stable main\n"
        "deb [signed-by=/k.gpg] http://mirror.example/debian stable main # ours\n"
        "deb-src http://mirror.example/debian other main\n\n"
    )
    (tmp_path / "sources.list.d/debian.sources").write_text(
        "# a comment\nTypes: deb\n# another\nURIs: http://mirror.example/debian\n"
        "Suites: stable\nComponents: main\nSigned-By: /k.gpg\n\n"
        "Types: deb\nURIs: http://off.example\nSuites: x\nEnabled: no\n"
    )
    entries = source_entries(tmp_path)
    assert entries["sources.list"].splitlines() == [
        "deb-src [signed-by=/k.gpg] http://mirror.example/debian stable main",
        "deb-src http://mirror.example/debian other main",
    ]
    assert entries["debian.sources"] == (
        "Types: deb-src\nURIs: http://mirror.example/debian\n"
        "Suites: stable\nComponents: main\nSigned-By: /k.gpg\n"
    )


def test_no_entry_for_a_mirror(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(DebianError, match="no entry"):
        Archive(tmp_path / "state", etc=tmp_path / "etc")


def _mirror(folder: Path, sources: str | None) -> Path:
    """Make an unsigned mirror of sources in ``folder``; return apt's configuration for it."""
    release = "Suite: stable\nCodename: stable\nComponents: main\n"
    if sources is not None:
        listed = folder / "mirror/dists/stable/main/source/Sources"
        listed.parent.mkdir(parents=True)
        listed.write_text(sources)
        digest = hashlib.sha256(sources.encode()).hexdigest()
        release += f"SHA256:\n {digest} {len(sources)} main/source/Sources\n"
    (folder / "mirror/dists/stable").mkdir(parents=True, exist_ok=True)
    (folder / "mirror/dists/stable/Release").write_text(release)
    return _entry(folder, f"deb [trusted=yes] file:{folder}/mirror stable main")


def _entry(folder: Path, line: str) -> Path:
    (folder / "etc").mkdir()
    (folder / "etc/sources.list").write_text(f"{line}\n")
    return folder / "etc"


def test_without_network_or_sources_the_reason_is_the_true_one(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    etc = _entry(tmp_path / "one", "deb http://127.0.0.1:9/debian stable main")
    with pytest.raises(DebianError, match=r"answers \(http://127\.0\.0\.1:9.*look at the network"):
        Archive(tmp_path / "one", etc=etc)
    (tmp_path / "two").mkdir()
    etc = _mirror(tmp_path / "two", None)
    with pytest.raises(DebianError, match="lists sources; add a Debian mirror"):
        Archive(tmp_path / "two", etc=etc)


def test_a_package_that_the_mirrors_lack(tmp_path: Path) -> None:
    paragraph = (
        "Package: good\nBinary: good\nVersion: 2-1\nArchitecture: any\nFormat: 1.0\n"
        "Directory: pool\nFiles:\n d41d8cd98f00b204e9800998ecf8427e 0 good_2.orig.tar.gz\n"
    )
    archive = Archive(tmp_path, etc=_mirror(tmp_path, paragraph))
    with pytest.raises(DebianError, match="no source package other"):
        archive.download("other", "1-1", {}, tmp_path / "download")
    with pytest.raises(DebianError, match="have good 2-1, but not 1-1"):
        archive.download("good", "1-1", {}, tmp_path / "download")


def test_a_source_package_whose_newest_version_has_lost_a_file(tmp_path: Path) -> None:
    paragraphs = []
    pool = tmp_path / "mirror/pool"
    pool.mkdir(parents=True)
    for version in ("2-1", "1-1"):
        names = (f"good_{version}.dsc", f"good_{version[0]}.orig.tar.gz")
        hashes = [
            f" {hashlib.sha256(name.encode()).hexdigest()} {len(name)} {name}" for name in names
        ]
        listed = "\n".join(hashes)
        paragraphs.append(
            f"Package: good\nBinary: good\nVersion: {version}\nArchitecture: any\nFormat: 1.0\n"
            f"Directory: pool\nChecksums-Sha256:\n{listed}\n"
        )
        for name in names if version == "1-1" else names[:1]:
            (pool / name).write_text(name)
    etc = _mirror(tmp_path, "\n".join(paragraphs))
    (tmp_path / "state").mkdir()
    (tmp_path / "download").mkdir()
    archive = Archive(tmp_path / "state", etc=etc)
    description = archive.source_package("good", tmp_path / "download")
    assert description.name == "good_1-1.dsc"
    found = {path.name for path in (tmp_path / "download").iterdir()}
    assert found == {"good_1-1.dsc", "good_1.orig.tar.gz"}
    with pytest.raises(DebianError, match="other"):
        archive.source_package("other", tmp_path / "download")


def test_binary_packages_are_listed_too(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://mirror.example/debian stable main\n")
    (tmp_path / "sources.list.d/debian.sources").write_text(
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: stable\nComponents: main\n"
    )
    entries = source_entries(tmp_path, binaries=True)
    assert entries["sources.list"].splitlines() == [
        "deb http://mirror.example/debian stable main",
        "deb-src http://mirror.example/debian stable main",
    ]
    assert entries["debian.sources"].startswith("Types: deb deb-src\n")


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.parametrize(
    "extra",
    [
        tarfile.TarInfo("../escaped"),
        tarfile.TarInfo("/tmp/nestor-escaped"),
        _link("a/link", "/etc/passwd"),
        _link("a/link", "../../outside"),
    ],
)
@pytest.mark.parametrize("old_python", [False, True])
def test_hostile_tarballs_stay_inside(
    tmp_path: Path, extra: tarfile.TarInfo, old_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old_python:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    path = tmp_path / "x.tar.gz"
    path.write_bytes(tarball({"a/x": "text"}, extra))
    with suppress(tarfile.TarError):
        extract(path, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "escaped").exists()
    assert not Path("/tmp/nestor-escaped").exists()
    for found in (tmp_path / "deep").rglob("*"):
        assert found.resolve().is_relative_to(tmp_path / "deep")
