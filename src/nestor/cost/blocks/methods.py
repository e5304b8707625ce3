"""How the labels of a table were measured: labels of two methods are two quantities.

Labels of repetitions that overlap (``rdtsc``) are lower for short chains of dependent instructions
than those of the steady state (``rdtsc-fenced``). A mean of the two is neither.
"""

from nestor.cost.blocks.table import Table, TableError


def methods_of(table: Table) -> dict[str, tuple[str, ...]]:
    """Return the methods of each machine's rows, sorted; rows that name none say nothing."""
    found: dict[str, set[str]] = {}
    machines = table.machine or ("",) * len(table)
    for machine, method in zip(machines, table.backend or (), strict=False):
        if method:
            found.setdefault(machine, set()).add(method)
    return {machine: tuple(sorted(methods)) for machine, methods in found.items()}


def require_one_method(table: Table) -> None:
    """Refuse a table that holds labels of one machine by two methods.

    :raises TableError: if there is such a machine.
    """
    for machine, methods in methods_of(table).items():
        if len(methods) > 1:
            raise TableError(
                f"The labels of '{machine}' were measured by {' and '.join(methods)}, which are"
                " different quantities; train on rows of one of them."
            )
