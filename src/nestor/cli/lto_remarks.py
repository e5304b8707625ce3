"""A remark on built-in policies where they change nothing, or were not made to decide."""

from collections.abc import Iterable

from nestor.cli.remarks import remark
from nestor.problem.in_builds import in_lto


def remark_on_lto(policies: Iterable[str], *, lto: bool) -> None:
    """Print on standard error what a user should know of ``policies`` in this kind of build.

    :param policies: as the user names them; a file is never meant.
    :param lto: whether they decide inside LTO.
    """
    inside = in_lto()
    for name in dict.fromkeys(policies):
        if lto and name in inside.instead:
            remark(f"{name} changes nothing inside LTO: use {inside.instead[name]} there.")
        if lto and name in inside.unmade:
            remark(f"{name} was made without LTO: {inside.unmade[name]}.")
        if not lto and name in inside.only:
            remark(f"{name} is made for links by LTO: without -flto use {inside.only[name]}.")
