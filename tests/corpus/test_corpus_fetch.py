"""Fetching a tier with projects that fail; the tiers that come with the package."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import exchange, smoke, store
from nestor.corpus.fetch import debian, reading
from nestor.corpus.fetch.debian import Archive, DebianError
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.recipe import Recipe, Step
from nestor.corpus.fetch.tiers import TIERS, recipe_folder, recipes
from nestor.corpus.model import Corpus, CorpusError
from tests.corpus.conftest import tarball

GOOD = tarball(
    {
        "good-1/main.c": "int f(void); int main(void) { return f(); }",
        "good-1/f.c": "int f(void) { return 0; }",
        "good-1/configure": "#!/bin/sh\necho 'int x;' > probe.c && $CC -c probe.c\n",
    }
)
BAD = tarball({"bad-1/main.c": "int main(void) {"})
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
def test_the_tiny_tier(tiny_corpus: Corpus) -> None:
    """The fixture has fetched it, and nothing was missing."""
    store.verify(tiny_corpus)
    assert len(tiny_corpus.modules) == 44
    assert {p.name for p in tiny_corpus.programs_of("test")} == {
        "pugixml/custom_memory_management", "pugixml/xpath_query", "lz4/lz4",
    }  # fmt: skip
    assert tiny_corpus.dropped_options == 0
