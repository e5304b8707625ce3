"""Make the problems' environments known to Gymnasium.

Gymnasium 1.0 dropped the discovery of plug-ins through entry points: somebody has to import the
module that registers. Importing ``nestor`` after ``gymnasium`` is enough, and so is an id that
names this module::

    import gymnasium, nestor
    gymnasium.make("nestor/RegallocEviction-v0")

    gymnasium.make("nestor.registration:nestor/RegallocEviction-v0")
"""

from collections.abc import Mapping

import gymnasium

from nestor.problem.registry import environment_names


def environment_ids() -> Mapping[str, str]:
    """Return the problem of each environment by Gymnasium's id."""
    return {f"nestor/{name}-v0": problem for name, problem in environment_names().items()}


def register() -> None:
    """Register the environments; nothing happens to those that already are."""
    for identity, problem in environment_ids().items():
        if identity not in gymnasium.registry:
            gymnasium.register(
                identity, entry_point="nestor.environment:make", kwargs={"problem": problem}
            )


register()
