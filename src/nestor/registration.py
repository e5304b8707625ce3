"""Make the environment known to Gymnasium.

Gymnasium 1.0 dropped the discovery of plug-ins through entry points: somebody has to import the
module that registers. Importing ``nestor`` after ``gymnasium`` is enough, and so is an id that
names this module::

    import gymnasium, nestor
    gymnasium.make("nestor/InliningForSize-v0")

    gymnasium.make("nestor.registration:nestor/InliningForSize-v0")
"""

from typing import Final

import gymnasium

ENVIRONMENT_ID: Final = "nestor/InliningForSize-v0"


def register() -> None:
    """Register the environment; nothing happens when it already is."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(ENVIRONMENT_ID, entry_point="nestor.environment:InliningForSize")


register()
