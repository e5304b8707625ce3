"""What a run is priced by: a model of blocks and penalties, of one machine where there are both."""

from typing import TYPE_CHECKING

from nestor.cli.remarks import remark

if TYPE_CHECKING:
    from nestor.cost.contract import CostModel
    from nestor.program_cost.penalties import Penalties


def prices(model: str, machine: str | None, penalties: str | None) -> "tuple[CostModel, Penalties]":
    """Return the model of blocks and the penalties that a command line names.

    Blocks are predicted for the machine of the penalties unless ``machine`` names another.

    :raises NestorError: if one of them is not there.
    """
    from nestor.cost.model.mean import OwnModel
    from nestor.cost.registry import open_model_for
    from nestor.program_cost import penalties as machines

    found = machines.named(penalties)
    blocks = open_model_for(model, machine, found.machine)
    if machine is None and isinstance(blocks, OwnModel) and blocks.machine != found.machine:
        remark(
            f"'{model}' has no model of {found.machine}, so blocks are priced as on"
            f" {blocks.machine}; --machine names another, and 'nestor costmodel adapt' makes one"
            " from 3,000 labels"
        )
    return blocks, found
