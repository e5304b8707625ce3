"""A remark on built-in policies where they change nothing, or were not made to decide."""

from collections.abc import Iterable

from nestor.cli.remarks import remark
from nestor.problem.in_builds import made_without_lto, policies_for_lto


def lto_sentence(policies: Iterable[str], *, lto: bool) -> str | None:
    """Return what a user should know of ``policies`` in this kind of build; None for nothing.

    :param policies: as the user names them; a file is never meant.
    :param lto: whether they decide inside LTO.
    """
    named = set(policies)
    for outside, inside in policies_for_lto().items():
        if lto and outside in named:
            return f"{outside} changes nothing inside LTO: use {inside} there."
        if not lto and inside in named:
            return f"{inside} is made for links by LTO: without -flto use {outside}."
    for name, what in made_without_lto().items() if lto else ():
        if name in named:
            return f"{name} was made without LTO: {what}."
    return None


def remark_on_lto(policies: Iterable[str], *, lto: bool) -> None:
    """Print :func:`lto_sentence` on standard error if there is one."""
    sentence = lto_sentence(policies, lto=lto)
    if sentence is not None:
        remark(sentence)
