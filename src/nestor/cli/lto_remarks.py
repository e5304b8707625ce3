"""Built-in policies where they change nothing, or where they were not made to decide."""

from collections.abc import Iterable, Sequence

from nestor.cli.remarks import remark
from nestor.problem.in_builds import problems_in_builds


def made_for(policies: Sequence[str], *, lto: bool) -> tuple[str, ...]:
    """Return ``policies`` with those that change nothing inside LTO replaced by their likes there.

    :param policies: names of built-ins.
    :param lto: whether they decide inside LTO; otherwise nothing is replaced.
    """
    likes = _for_lto() if lto else {}
    return tuple(likes.get(name, name) for name in policies)


def lto_sentence(policies: Iterable[str], *, lto: bool) -> str | None:
    """Return what a user should know of ``policies`` in this kind of build; None for nothing.

    :param policies: as the user names them; a file is never meant.
    :param lto: whether they decide inside LTO.
    """
    named = set(policies)
    for outside, inside in _for_lto().items():
        if lto and outside in named:
            return f"{outside} changes nothing inside LTO: use {inside} there."
        if not lto and inside in named:
            return f"{inside} is made for links by LTO: without -flto use {outside}."
    return None


def remark_on_lto(policies: Iterable[str], *, lto: bool) -> None:
    """Print :func:`lto_sentence` on standard error if there is one."""
    sentence = lto_sentence(policies, lto=lto)
    if sentence is not None:
        remark(sentence)


def _for_lto() -> dict[str, str]:
    problems = problems_in_builds(first="").values()
    return {name: like for each in problems for name, like in each.for_lto.items()}
