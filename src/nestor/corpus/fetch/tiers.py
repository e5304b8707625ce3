"""The tiers that come with the package: which projects a corpus is made of."""

import functools
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

from nestor.corpus.fetch.recipe import Recipe
from nestor.corpus.level import Level

Tier = Literal["tiny", "demo", "bench", "fresh", "speed"]
"""What ``corpus/recipes/tiers.toml`` lists; a test compares them."""

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)


@functools.cache
def recipes(tier: Tier) -> tuple[Recipe, ...]:
    """Return the recipes of a tier, with workloads if the tier is one of workloads.

    :raises RecipeError: if a file of ``corpus/recipes`` cannot be used.
    """
    from nestor.corpus.fetch.reading import read_recipes, read_tiers  # Not needed by --help.
    from nestor.corpus.fetch.workloads import with_workloads

    folder = recipe_folder()
    content = read_tiers(folder)[tier]
    found = read_recipes(folder, content.projects)
    return tuple(with_workloads(r, folder) for r in found) if content.workloads else found


def usual_level(tier: Tier) -> Level:
    """Return the level at which a tier is fetched unless the user wants another.

    :raises RecipeError: if the list of tiers cannot be used.
    """
    from nestor.corpus.fetch.reading import read_tiers

    return read_tiers(recipe_folder())[tier].level


def recipe_folder() -> Path:
    """Return the folder of the recipes."""
    return Path(str(resources.files("nestor"))) / "corpus" / "recipes"
