"""Recipes are read from files, and what is wrong with one is said with its place."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.fetch.fetch import recipe_digest
from nestor.corpus.fetch.reading import read_recipes, read_tiers
from nestor.corpus.fetch.recipe import Step
from nestor.corpus.fetch.tables import RecipeError
from nestor.corpus.fetch.tiers import recipes

TIERS = """
[small]
projects = ["one", "two"]
[large]
includes = ["small"]
projects = ["two", "three"]
"""
SHARED = '[tone]\nconfigure = ["perl", "-e", "print"]\n'
RECIPE = """
version = "1-1"
licence = "MIT"
style = "C: small"
steps = [
  { cmake = ["-DX=ON"], source = "lib" },
  { ninja = ["prog"] },
  { examples = ["a/x.cc", "y.cc"], options = ["-I."], libraries = ["z.o"] },
  { run = ["@CC@", "-c", "a.c"] },
  { configure = ["./configure"] },
  { shared = "tone" },
]
[sources]
"one.tar.gz" = "SHA"
[programs]
"build/prog" = ["-q", "<in"]
[inputs]
in = "data/in"
""".replace("SHA", "0" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "projects").mkdir()
    (tmp_path / "tiers.toml").write_text(TIERS)
    (tmp_path / "shared.toml").write_text(SHARED)
    (tmp_path / "projects" / "one.toml").write_text(RECIPE)
    return tmp_path


def test_tiers_include_others(folder: Path) -> None:
    found = {name: content.projects for name, content in read_tiers(folder).items()}
    assert found == {"small": ("one", "two"), "large": ("one", "two", "three")}


def test_every_kind_of_step(folder: Path) -> None:
    (recipe,) = read_recipes(folder, ["one"])
    assert (recipe.project, recipe.package, recipe.split) == ("one", "one", "train")
    cmake, ninja, *examples, run, configure, tone = recipe.steps
    assert cmake.command[:5] == ("cmake", "-S", "lib", "-B", "build")
    assert cmake.command[-1] == "-DX=ON"
    assert not cmake.capture
    assert ninja == Step(("ninja", "-C", "build", "-j@JOBS@", "prog"))
    assert examples == [
        Step(("@CXX@", "-I.", "-c", "a/x.cc", "-o", "x.o")),
        Step(("@CXX@", "x.o", "z.o", "-o", "x")),
        Step(("@CXX@", "-I.", "-c", "y.cc", "-o", "y.o")),
        Step(("@CXX@", "y.o", "z.o", "-o", "y")),
    ]
    assert run == Step(("@CC@", "-c", "a.c"))
    assert configure == Step(("./configure",), capture=False)
    assert tone == Step(("perl", "-e", "print"), capture=False)
    assert recipe.programs == {"build/prog": ("-q", "<in")}
    assert recipe.inputs == {"in": "data/in"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('version = "1-1"', "", "'version' is missing"),
        ('version = "1-1"', "version = 1", "version must be a text"),
        ('licence = "MIT"', 'license = "MIT"', "'licence' is missing"),
        ('style = "C: small"', 'style = "C: small"\nsplit = "held-out"', "train, validation, test"),
        ('style = "C: small"', 'style = "C: small"\ncolour = "red"', "'colour' is no key"),
        ("0" * 64, "0" * 63, "needs the sha256 of one.tar.gz"),
        ('{ ninja = ["prog"] }', '{ ninjas = ["prog"] }', "step 2 needs exactly one of"),
        ('{ ninja = ["prog"] }', '{ ninja = "prog" }', "must be a list of texts"),
        ('{ ninja = ["prog"] }', '{ ninja = [], source = "x" }', "'source' is no key"),
        ('{ ninja = ["prog"] }', "{ ninja = [], run = [] }", "step 2 needs exactly one of"),
        ('{ ninja = ["prog"] }', '"ninja"', "step 2 must be a table"),
        ('shared = "tone"', 'shared = "noise"', "'noise', which shared.toml does not have"),
        ('["-q", "<in"]', '"-q"', "must be a list of texts"),
        ('in = "data/in"', "in = 3", "in of inputs must be a text"),
        ("[programs]", "[programs", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    folder: Path, old: str, new: str, reason: str
) -> None:
    path = folder / "projects" / "one.toml"
    assert old in RECIPE
    path.write_text(RECIPE.replace(old, new, 1))
    with pytest.raises(RecipeError) as caught:
        read_recipes(folder, ["one"])
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_tier_with_a_project_that_has_no_recipe(folder: Path) -> None:
    with pytest.raises(RecipeError, match=r"two\.toml does not exist"):
        read_recipes(folder, ["one", "two"])


@pytest.mark.parametrize(
    "text", ['[a]\nincludes = ["b"]\nprojects = []', "[a]\nproject = []", "a = 3", "[a"]
)
def test_a_list_of_tiers_that_cannot_be_used(folder: Path, text: str) -> None:
    (folder / "tiers.toml").write_text(text)
    with pytest.raises(RecipeError, match=r"tiers\.toml"):
        read_tiers(folder)


def test_corpora_that_were_fetched_before_recipes_were_files_are_complete(
    toolchain: Toolchain,
) -> None:
    """These digests are those of the corpora that were fetched when recipes were code."""
    released = replace(toolchain, version="22.1.8")
    found = {r.project: recipe_digest(r, released) for r in recipes("bench")}
    assert found["bzip2"].startswith("eb5839a155372def")
    assert found["jsoncpp"].startswith("85e03f15f64289c0")
    assert found["lz4"].startswith("abca14dd4ff186bc")
    # What a level changes is fetched again; the default level is not part of the digest.
    (bzip2,) = (r for r in recipes("tiny") if r.project == "bzip2")
    assert recipe_digest(bzip2, released, "-Oz") == found["bzip2"]
    assert recipe_digest(bzip2, released, "-O2") != found["bzip2"]
