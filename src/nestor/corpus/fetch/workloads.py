"""Read workloads from ``corpus/recipes/workloads``: one TOML file for each project.

A file names the programs of the project's recipe that have a workload, and what their runs read::

    [programs."src/prog"]
    measure = ["-q", "large.txt"]     # the run that is measured, arguments as in the recipe
    profile = ["-q", "prog.c"]        # another input, for profiles and searches
    # profile = [["-q", "prog.c"], ["all.c"]]   several runs, which count together

    [inputs]                          # by the name under which the runs find them
    "prog.c" = "src/prog.c"           # a file of the sources
    "all.c" = ["a.c", "b.c"]          # several, one after the other
    "large.txt" = { generate = "text", size = 200000, seed = 1 }
    "run.lua" = { text = "print(1)" }
"""

from dataclasses import replace
from pathlib import Path

from nestor.corpus.fetch.generated import KINDS
from nestor.corpus.fetch.inputs import FromSeed, FromSources, FromText, InputSource
from nestor.corpus.fetch.recipe import Recipe
from nestor.corpus.fetch.tables import Context, check_keys, read_toml, table_of, text_of, words_of
from nestor.corpus.model import Workload, runs_of
from nestor.corpus.smoke import check_standard_input


def with_workloads(recipe: Recipe, folder: Path) -> Recipe:
    """Return ``recipe`` with its workloads, and without the programs that have none.

    :param folder: the folder of the recipes.
    :raises RecipeError: if there is no file of workloads for the project, or it cannot be used.
    """
    path = folder / "workloads" / f"{recipe.project}.toml"
    table = read_toml(path)
    with Context(path):
        check_keys(table, {"programs"}, {"inputs"})
        inputs = {
            name: _source(value, f"{name} of inputs")
            for name, value in table_of(table.get("inputs", {}), "inputs").items()
        }
        workloads = {
            name: _workload(value, name)
            for name, value in table_of(table["programs"], "programs").items()
        }
        strange = sorted(set(workloads) - set(recipe.programs))
        if strange:
            raise ValueError(f"{strange[0]} is no program of the recipe")
        readable = {**inputs, **recipe.inputs}
        for name, workload in workloads.items():
            for words in workload.each:
                check_standard_input(name, words, readable)
    return replace(
        recipe,
        programs={name: recipe.programs[name] for name in workloads},
        workloads=workloads,
        workload_inputs=inputs,
    )


def _workload(value: object, where: str) -> Workload:
    table = table_of(value, where)
    check_keys(table, {"measure"}, {"profile"}, where)
    measure = words_of(table["measure"], f"measure of {where}")
    try:
        return Workload(tuple(measure), runs_of(table.get("profile", [])))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _source(value: object, where: str) -> InputSource:
    if isinstance(value, str):
        return FromSources((value,))
    if isinstance(value, list):
        return FromSources(tuple(words_of(value, where)))
    table = table_of(value, where)
    if "text" in table:
        check_keys(table, {"text"}, (), where)
        return FromText(text_of(table["text"], where))
    check_keys(table, {"generate", "size", "seed"}, (), where)
    kind, size, seed = text_of(table["generate"], where), table["size"], table["seed"]
    if kind not in KINDS:
        raise ValueError(f"{where}: there is no kind {kind!r}; there are: {', '.join(KINDS)}")
    if not isinstance(size, int) or not isinstance(seed, int):
        raise TypeError(f"{where}: size and seed must be integers")
    return FromSeed(kind, size, seed)
