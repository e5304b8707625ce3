"""Workloads of recipes: read from files, their inputs, and the tier that has them."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.capture import merge
from nestor.corpus.capture.drafts import Selection
from nestor.corpus.fetch.fetch import recipe_digest
from nestor.corpus.fetch.generated import KINDS, generate
from nestor.corpus.fetch.inputs import FromSeed, FromSources, FromText
from nestor.corpus.fetch.reading import read_recipes
from nestor.corpus.fetch.tables import RecipeError
from nestor.corpus.fetch.tiers import recipe_folder, recipes, usual_level
from nestor.corpus.fetch.workloads import with_workloads
from nestor.corpus.layout import MANIFEST
from nestor.corpus.model import CorpusError, Project, Workload
from tests.corpus.conftest import SourceTree

WORKLOADS = """
[programs.bzip2]
measure = ["-c", "large.txt"]
profile = ["-c", "<all.c"]

[inputs]
"large.txt" = { generate = "text", size = 1000, seed = 7 }
"all.c" = ["a.c", "b.c"]
"one.c" = "a.c"
"run.sh" = { text = "echo" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "bzip2.toml").write_text(WORKLOADS)
    return tmp_path


def test_a_recipe_with_workloads(folder: Path, toolchain: Toolchain) -> None:
    (plain,) = read_recipes(recipe_folder(), ["bzip2"])
    assert set(plain.programs) == {"bzip2", "bzip2recover"}
    recipe = with_workloads(plain, folder)
    assert set(recipe.programs) == {"bzip2"}
    assert recipe.workloads == {"bzip2": Workload(("-c", "large.txt"), (("-c", "<all.c"),))}
    assert recipe.workload_inputs == {
        "large.txt": FromSeed("text", 1000, 7),
        "all.c": FromSources(("a.c", "b.c")),
        "one.c": FromSources(("a.c",)),
        "run.sh": FromText("echo"),
    }
    (folder / "a.c").write_text("a\n")
    (folder / "b.c").write_text("b\n")
    assert recipe.workload_inputs["all.c"].content(folder) == b"a\nb\n"
    assert recipe.workload_inputs["run.sh"].content(folder) == b"echo"
    assert recipe.workload_inputs["large.txt"].content(folder) == generate("text", 1000, 7)
    # Other inputs make another corpus; the recipe without workloads is what it was.
    other = replace(recipe, workload_inputs={"large.txt": FromSeed("text", 1000, 8)})
    digests = {recipe_digest(r, toolchain, "-O2") for r in (plain, recipe, other)}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[programs.bzip2]", "[programs.bzip3]", "bzip3 is no program of the recipe"),
        ('"-c", "<all.c"', '"-c", "<gone.c"', "bzip2 reads gone.c"),
        ('measure = ["-c", "large.txt"]', "measure = []", "a run has no arguments"),
        (
            'measure = ["-c", "large.txt"]',
            'measure = ["-c", "<all.c"]',
            "is a run for profiles",
        ),
        ('generate = "text"', 'generate = "noise"', "there is no kind 'noise'"),
        ("seed = 7", 'seed = "7"', "size and seed must be integers"),
        ('{ text = "echo" }', '{ text = "echo", size = 1 }', "'size' is no key"),
        ("[inputs]", "[input]", "'input' is no key"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    folder: Path, old: str, new: str, reason: str
) -> None:
    path = folder / "workloads" / "bzip2.toml"
    assert old in WORKLOADS
    path.write_text(WORKLOADS.replace(old, new, 1))
    (plain,) = read_recipes(recipe_folder(), ["bzip2"])
    with pytest.raises(RecipeError) as caught:
        with_workloads(plain, folder)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_a_project_without_a_file_of_workloads(folder: Path) -> None:
    (plain,) = read_recipes(recipe_folder(), ["zlib"])
    with pytest.raises(RecipeError, match=r"zlib\.toml does not exist"):
        with_workloads(plain, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_generated_inputs_depend_on_size_and_seed_alone(kind: str) -> None:
    first = generate(kind, 30, 1)
    assert first == generate(kind, 30, 1)
    assert first != generate(kind, 30, 2)
    assert len(generate(kind, 60, 1)) > len(first) or kind in ("text", "sound")


def test_generated_inputs_are_the_same_on_every_machine() -> None:
    """The corpora that were fetched have these bytes: another sum means other results."""
    content = b"".join(generate(kind, 25, 3) for kind in KINDS)
    assert hashlib.sha256(content).hexdigest()[:16] == "f9d92481719f5f0b"


def test_the_speed_tier_has_many_styles_and_holds_some_out() -> None:
    tier = recipes("speed")
    assert usual_level("speed") == "-O2"
    assert usual_level("tiny") == "-Oz"
    files = {path.stem for path in (recipe_folder() / "workloads").iterdir()}
    assert files == {recipe.project for recipe in tier}
    assert sum(len(recipe.workloads) for recipe in tier) >= 24
    splits = {split: [r for r in tier if r.split == split] for split in ("train", "test")}
    assert len(splits["test"]) >= 12
    for part in splits.values():
        in_c = sum(recipe.style.startswith("C: ") for recipe in part)
        assert in_c >= 6
        assert len(part) - in_c >= 6
    trained = " ".join(recipe.style for recipe in splits["train"])
    for lacking in ("solver", "data base", "typesetter", "dictionaries", "compiler in one pass"):
        assert lacking not in trained
        assert any(lacking in recipe.style for recipe in splits["test"])
    # The recipe of a project is the same in every tier, so its split is too.
    others = {r.project: r.split for name in ("bench", "fresh") for r in recipes(name)}
    assert all(others.get(r.project, r.split) == r.split for r in tier)
    for recipe in tier:
        inputs = recipe.inputs.keys() | recipe.workload_inputs.keys()
        assert all("/" not in name for name in inputs)
        assert set(recipe.programs) == set(recipe.workloads)
        for workload in recipe.workloads.values():
            assert workload.profile


def test_only_linked_modules_are_taken_and_runs_are_kept(tree: SourceTree) -> None:
    tree.write("main.c", "int main(void) { return 0; }")
    tree.write("other.c", "int other(void) { return 1; }")
    for name in ("main", "other"):
        assert tree.cc("-c", f"{name}.c").returncode == 0
    assert tree.cc("main.o", "-o", "prog").returncode == 0
    workload = Workload(("1",), (("2",), ("3", "4")))
    selection = Selection(Project("demo"), {"prog": ()}, {"prog": workload}, linked_only=True)
    corpus = merge.finalise(tree.wrappers.corpus, tree.journal, [selection], toolchain="test")
    assert [m.name for m in corpus.modules] == ["demo/main.o"]
    assert corpus.program("demo/prog").workload == workload
    assert store.load(corpus.root) == corpus
    # Captured again without a selection, the program keeps its runs.
    again = tree.finalise()
    assert again.program("demo/prog").workload == workload


@pytest.mark.parametrize("word", ["x" * 100_001, "a\0b", 7])
def test_words_of_runs_in_a_manifest_are_bounded(tree: SourceTree, word: object) -> None:
    tree.write("main.c", "int main(void) { return 0; }")
    assert tree.cc("-c", "main.c").returncode == 0
    assert tree.cc("main.o", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    workload = Workload(("1",), (("2",),))
    store.save(replace(corpus, programs=(replace(corpus.programs[0], workload=workload),)))
    path = corpus.root / MANIFEST
    manifest = json.loads(path.read_text())
    for runs in ({"measure": [word]}, {"profile": [["2"], [word]]}):
        broken = {**manifest["programs"][0]["workload"], **runs}
        program = {**manifest["programs"][0], "workload": broken}
        path.write_text(json.dumps({**manifest, "programs": [program]}))
        with pytest.raises(CorpusError, match="is damaged"):
            store.load(corpus.root)
