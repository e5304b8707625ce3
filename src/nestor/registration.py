"""Make the environment known to Gymnasium.

Gymnasium 1.0 dropped the discovery of plug-ins through entry points: somebody has to import the
module that registers. Importing this one is enough, and an id may name it, so both of these work
without another import::

    gymnasium.make("nestor.registration:nestor/InliningForSize-v0")

    import nestor.registration
    gymnasium.make("nestor/InliningForSize-v0")
"""

from typing import Final

import gymnasium

ENVIRONMENT_ID: Final = "nestor/InliningForSize-v0"


def register() -> None:
    """Register the environment; nothing happens when it already is."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(ENVIRONMENT_ID, entry_point="nestor.environment:InliningForSize")


register()
