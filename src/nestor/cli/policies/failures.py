"""What did not work, last on standard error, where neither a table nor ``--json`` hides it."""

from collections.abc import Sequence
from typing import Final

from rich.markup import escape

from nestor.cli.console import stderr
from nestor.evaluate.result import Failure

_SHOWN: Final = 20


def show_failures(failures: Sequence[Failure]) -> int:
    """Print failures, equal ones once, and return the command's exit status: 1 if there are any."""
    unique = list(dict.fromkeys(failures))
    for failure in unique[:_SHOWN]:
        stderr.print(
            f"[red]failed[/] {escape(failure.what)} ({escape(failure.side)}):"
            f" {escape('; '.join(failure.reason.splitlines()))}",
            soft_wrap=True,
        )
    if len(unique) > _SHOWN:
        left = len(unique) - _SHOWN
        stderr.print(f"and {left} more failures (--json shows all)", soft_wrap=True)
    return 1 if unique else 0
