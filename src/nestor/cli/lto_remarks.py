"""A remark on built-in policies where they change nothing, or were not made to decide."""

from collections.abc import Iterable

from nestor.cli.remarks import remark
from nestor.problem.in_builds import made_without_lto, policies_for_lto, policies_only_in_lto


def remark_on_lto(policies: Iterable[str], *, lto: bool) -> None:
    """Print on standard error what a user should know of ``policies`` in this kind of build.

    :param policies: as the user names them; a file is never meant.
    :param lto: whether they decide inside LTO.
    """
    named = set(policies)
    for outside, inside in policies_for_lto().items():
        if lto and outside in named:
            remark(f"{outside} changes nothing inside LTO: use {inside} there.")
    for inside, outside in () if lto else policies_only_in_lto().items():
        if inside in named:
            remark(f"{inside} is made for links by LTO: without -flto use {outside}.")
    for name, what in made_without_lto().items() if lto else ():
        if name in named:
            remark(f"{name} was made without LTO: {what}.")
