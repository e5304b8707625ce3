"""Fetching: apt's entries, tarballs, and a tier with projects that fail."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import exchange, smoke, store
from nestor.corpus.fetch import debian, reading
from nestor.corpus.fetch.debian import Archive, DebianError, extract, source_entries
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.recipe import Recipe, Step
from nestor.corpus.fetch.tiers import TIERS, recipe_folder, recipes
from nestor.corpus.model import CorpusError
from nestor.progress import silent


def _tarball(members: Mapping[str, str], extra: tarfile.TarInfo | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            info.mode = 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
        if extra is not None:
            archive.addfile(extra)
    return buffer.getvalue()


GOOD = _tarball(
    {
        "good-1/main.c": "int f(void); int main(void) { return f(); }",
        "good-1/f.c": "int f(void) { return 0; }",
        "good-1/configure": "#!/bin/sh\necho 'int x;' > probe.c && $CC -c probe.c\n",
    }
)
BAD = _tarball({"bad-1/main.c": "int main(void) {"})
FILES = {"good": GOOD, "bad": BAD}
FILES_GONE: set[str] = set()


class FakeArchive(Archive):
    """An archive of two packages; records what is requested of it."""

    requests: list[str]

    def __init__(self, _state: Path) -> None:
        type(self).requests = []

    def _versions(self, package: str) -> list[str]:
        return ["2-1", "1-1", "1-3", "1-2"] if package in FILES else []

    def _apt(self, arguments: list[str], folder: Path) -> None:
        package, _, version = arguments[-1].partition("=")
        self.requests.append(arguments[-1])
        if f"{package}={version}" in FILES_GONE or package not in FILES:
            raise DebianError(f"Unable to find a source package for {package}")
        (folder / f"{package}.tar.gz").write_bytes(FILES[package])


def _recipe(project: str, version: str = "1", sha256: str | None = None) -> Recipe:
    tarball = FILES.get(project, b"")
    return Recipe(
        project=project,
        package=project,
        version=version,
        sources={f"{project}.tar.gz": sha256 or hashlib.sha256(tarball).hexdigest()},
        licence="MIT",
        steps=(
            Step(("sh", "-c", "[ ! -f configure ] || ./configure"), capture=False),
            Step(("@CC@", "-c", "main.c")),
            Step(("sh", "-c", "[ ! -f f.c ] || { @CC@ -c f.c && @CC@ main.o f.o -o prog; }")),
        ),
        programs={"prog": ("--help",)},
        split="test",
    )


@pytest.fixture
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "Archive", FakeArchive)


@pytest.mark.usefixtures("_fake")
def test_what_fails_is_named_and_the_rest_goes_on(tmp_path: Path, toolchain: Toolchain) -> None:
    root = tmp_path / "corpus"
    wrong = replace(_recipe("good", sha256="0" * 64), project="wrong")
    result = fetch([_recipe("good"), _recipe("bad"), _recipe("none"), wrong], root, toolchain)
    assert result.built == ("good",)
    reasons = {m.project: m.reason for m in result.missing}
    assert set(reasons) == {"bad", "none", "wrong"}
    assert "error" in reasons["bad"]
    assert "no source package none" in reasons["none"]
    assert "sha256" in reasons["wrong"]
    corpus = store.load(root)
    store.verify(corpus)
    assert {m.project for m in corpus.missing} == set(reasons)
    assert [m.name for m in corpus.modules] == ["good/f.o", "good/main.o"]  # and no probe.o
    assert corpus.program("good/prog").smoke == ("--help",)
    assert [p.split for p in corpus.projects] == ["test"]
    leftovers = {p.name for p in root.rglob("*") if p.suffix == ".part" or ".journal" in p.name}
    assert leftovers == set()


@pytest.mark.usefixtures("_fake")
def test_a_second_fetch_does_nothing_and_a_failed_project_is_tried_again(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    root = tmp_path / "corpus"
    fetch([_recipe("good"), _recipe("bad")], root, toolchain)
    first = store.load(root)
    assert fetch([_recipe("good")], root, toolchain).present == ("good",)
    FakeArchive.requests.clear()
    again = fetch([_recipe("good"), _recipe("bad")], root, toolchain)
    assert (again.present, FakeArchive.requests) == (("good",), ["bad=1"])
    assert again.corpus == first
    # Another recipe for the project: it is built again and replaces the old one.
    assert fetch([_recipe("good", version="2")], root, toolchain).built == ("good",)
    assert store.load(root).modules == first.modules


@pytest.mark.usefixtures("_fake")
def test_what_is_only_said_about_a_project_builds_nothing(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    root = tmp_path / "corpus"
    recipe = _recipe("good")
    fetch([recipe], root, toolchain)
    said = replace(
        recipe, split="train", style="terse", licence="0BSD", programs={"prog": ("-x", "<main.c")}
    )
    result = fetch([said], root, toolchain)
    assert result.present == ("good",)
    assert result.corpus == store.load(root)
    (project,) = result.corpus.projects
    assert (project.split, project.style, project.licence) == ("train", "terse", "0BSD")
    assert result.corpus.program("good/prog").smoke == ("-x", "<main.c")


@pytest.mark.usefixtures("_fake")
def test_files_that_a_smoke_test_reads(tmp_path: Path, toolchain: Toolchain) -> None:
    root = tmp_path / "corpus"
    recipe = replace(
        _recipe("good"), inputs={"in.c": "main.c"}, programs={"prog": ("-q", "in.c", "<in.c")}
    )
    fetch([_recipe("good")], root, toolchain)
    corpus = fetch([recipe], root, toolchain).corpus
    store.verify(corpus)
    copied = exchange.import_(root, tmp_path / "copy")
    for here in (corpus, copied):
        folder = tmp_path / "run" / here.root.name
        run_ = smoke.prepare(here, here.program("good/prog"), folder)
        assert run_ == smoke.SmokeRun(("-q", "in.c"), folder / "in.c")
        assert (folder / "in.c").read_text().startswith("int f(void)")
    silent_program = replace(corpus.program("good/prog"), smoke=())
    assert smoke.prepare(corpus, silent_program, tmp_path / "none") is None
    (corpus.input(corpus.projects[0].inputs[0][1])).write_text("something else")
    with pytest.raises(CorpusError, match="inputs"):
        store.verify(corpus)
    gone = replace(recipe, inputs={"in.c": "no-such-file"})
    assert [m.project for m in fetch([gone], root, toolchain).missing] == ["good"]


@pytest.mark.usefixtures("_fake")
def test_equal_modules_belong_to_the_held_out_project_after_a_change_of_split(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    root = tmp_path / "corpus"
    first = replace(_recipe("good"), split="train")
    twin = replace(first, project="twin")
    before = fetch([first, twin], root, toolchain, 1).corpus
    assert {m.project for m in before.modules} == {"good"}
    moved = replace(twin, split="test")
    assert fetch([first, moved], root, toolchain, 1).built == ("twin",)
    after = store.load(root)
    assert {m.project for m in after.modules} == {"twin"}
    assert fetch([first, moved], root, toolchain, 1).built == ()


@pytest.mark.usefixtures("_fake")
def test_another_debian_revision_of_the_same_files_will_do(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    FILES_GONE.add("good=1-1")
    try:
        result = fetch([_recipe("good", version="1-1")], tmp_path / "corpus", toolchain)
    finally:
        FILES_GONE.clear()
    assert result.built == ("good",)
    assert FakeArchive.requests == ["good=1-1", "good=1-3"]


@pytest.mark.usefixtures("_fake")
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CorpusError, match="not empty"):
        fetch([_recipe("good")], tmp_path, toolchain)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


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


@pytest.mark.usefixtures("_fake")
def test_without_any_project_there_is_no_corpus(tmp_path: Path, toolchain: Toolchain) -> None:
    root = tmp_path / "corpus"
    with pytest.raises(CorpusError, match=r"no corpus at .*: Apt's mirrors have no source"):
        fetch([_recipe("none"), replace(_recipe("none"), project="neither")], root, toolchain)
    assert not root.exists() or not list(root.iterdir())


@pytest.mark.usefixtures("_fake")
def test_a_corpus_that_is_there_stays_when_more_cannot_be_had(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    root = tmp_path / "corpus"
    fetch([_recipe("good")], root, toolchain)
    result = fetch([_recipe("good"), _recipe("none")], root, toolchain)
    assert [m.project for m in result.missing] == ["none"]
    assert [m.project for m in store.load(root).missing] == ["none"]
    assert len(store.load(root).modules) == 2


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
    path.write_bytes(_tarball({"a/x": "text"}, extra))
    with suppress(tarfile.TarError):
        extract(path, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "escaped").exists()
    assert not Path("/tmp/nestor-escaped").exists()
    for found in (tmp_path / "deep").rglob("*"):
        assert found.resolve().is_relative_to(tmp_path / "deep")


def test_the_tiers_are_consistent() -> None:
    assert tuple(reading.read_tiers(recipe_folder())) == TIERS
    files = {path.stem for path in (recipe_folder() / "projects").iterdir()}
    assert files == {recipe.project for tier in TIERS for recipe in recipes(tier)}
    for tier in TIERS:
        assert len({r.project for r in recipes(tier)}) == len(recipes(tier))
        for recipe in recipes(tier):
            assert all(len(digest) == 64 for digest in recipe.sources.values())
            assert recipe.programs
            assert recipe.licence
            assert recipe.style
            words = [word for smoke_words in recipe.programs.values() for word in smoke_words]
            assert {word[1:] for word in words if word.startswith("<")} <= recipe.inputs.keys()
            assert all("/" not in name for name in recipe.inputs)
    tests = {r.project for r in recipes("tiny") if r.split == "test"}
    assert tests == {"lz4", "pugixml"}
    for split, c, cxx in (("train", 12, 12), ("validation", 2, 2), ("test", 6, 8)):
        styles = [r.style for r in recipes("bench") if r.split == split]
        in_c = sum(style.startswith("C: ") for style in styles)
        assert in_c >= c
        assert len(styles) - in_c >= cxx
    for lacking in ("expression templates", "solver", "compressor: "):
        assert {r.split for r in recipes("bench") if r.style.startswith(lacking)} == {"test"}


def test_the_fresh_tier_is_new_and_held_out() -> None:
    fresh = recipes("fresh")
    others = {name for r in recipes("demo") + recipes("bench") for name in _names(r)}
    assert all(others.isdisjoint(_names(recipe)) for recipe in fresh)
    assert {recipe.split for recipe in fresh} == {"test"}
    in_c = sum(recipe.style.startswith("C: ") for recipe in fresh)
    assert in_c >= 3
    assert len(fresh) - in_c >= 4


def _names(recipe: Recipe) -> set[str]:
    return {recipe.project, recipe.package, *recipe.sources}


@pytest.mark.corpus
def test_the_tiny_tier(tmp_path: Path, toolchain: Toolchain) -> None:
    result = fetch(recipes("tiny"), tmp_path / "tiny", toolchain, 2, silent)
    assert result.missing == ()
    store.verify(result.corpus)
    assert len(result.corpus.modules) == 44
    assert {p.name for p in result.corpus.programs_of("test")} == {
        "pugixml/custom_memory_management", "pugixml/xpath_query", "lz4/lz4",
    }  # fmt: skip
    assert result.corpus.dropped_options == 0
