"""The tiers that come with the package: which projects a corpus is made of."""

import functools
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

from nestor.corpus.fetch.recipe import Recipe

Tier = Literal["tiny", "demo", "bench", "fresh"]
"""What ``corpus/recipes/tiers.toml`` lists; a test compares them."""

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)


@functools.cache
def recipes(tier: Tier) -> tuple[Recipe, ...]:
    """Return the recipes of a tier.

    :raises RecipeError: if a file of ``corpus/recipes`` cannot be used.
    """
    from nestor.corpus.fetch.reading import read_recipes, read_tiers  # Not needed by --help.

    folder = recipe_folder()
    return read_recipes(folder, read_tiers(folder)[tier])


def recipe_folder() -> Path:
    """Return the folder of the recipes."""
    return Path(str(resources.files("nestor"))) / "corpus" / "recipes"
