"""How a policy of a problem gets into a user's own build: the plugin's options, by their names.

A problem that the plugin can decide says so in a module ``in_builds`` of its folder, as
``IN_BUILDS``. Commands that print options read these modules alone, and start without NumPy.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

_HOME: Final = "nestor.problems"
_MODULE: Final = "in_builds"


@dataclass(frozen=True)
class TextKind:
    """A kind of text files that users name and the plugin reads."""

    option: str
    """The plugin's option that takes such a file."""
    folder: str
    """Where the cache keeps copies."""
    holds: str
    """What such a file holds, for messages: "a summary"."""
    makers: tuple[str, ...]
    """The commands that make such files, for messages."""
    header: str
    """The first line that is not empty and no comment."""
    check: Callable[[str], object]
    """Raises a NestorError if a text is not of this kind."""


@dataclass(frozen=True)
class InLto:
    """What a link by LTO means for built-in policies, by their names."""

    instead: Mapping[str, str] = field(default_factory=dict)
    """Of a policy that changes nothing there: the one made for it."""
    only: Mapping[str, str] = field(default_factory=dict)
    """Of a policy made for it: its like in other builds."""
    unmade: Mapping[str, str] = field(default_factory=dict)
    """Of a policy that decides there, too, and was not made to: what of it is known."""
    starts: Mapping[str, str] = field(default_factory=dict)
    """Of a policy that searches start from: its like made for LTO, from which they start there,
    too. It is not in ``instead``, since its links take too long for builds that did not name it."""


@dataclass(frozen=True)
class InBuilds:
    """What a build's options say about one problem."""

    problem: str
    """Its name."""
    policy: str
    """The plugin's option that takes a policy file or ``default``; problems that take the same
    decisions at other levels share it, and a compile may have a policy for each."""
    overrides: TextKind
    """Answers that stand above the policy's; several problems may share a kind."""
    levels: tuple[str, ...] = ()
    """The optimisation levels at which its policies decide; empty if they do at each."""
    summary: TextKind | None = None
    """What modules are told of their program."""
    trials: str | None = None
    """The option with the folder in which the plugin keeps what it has tried: with a summary, and
    in links by LTO."""
    tried: frozenset[str] = frozenset()
    """The features of policies that let the plugin try something."""
    usual: str | None = None
    """The built-in policy to use if nothing speaks for another one."""
    best: str | None = None
    """The switch with which the plugin decides each function by the best of several policies and
    the default; None if the problem takes one policy."""
    in_lto: InLto = field(default_factory=InLto)


def problems_in_builds(first: str) -> Mapping[str, InBuilds]:
    """Return the problems that the plugin can decide in a user's build, by their names.

    :param first: the one that comes before the others.
    """
    home = Path(str(resources.files(_HOME)))
    folders = sorted(path.parent.name for path in home.glob(f"*/{_MODULE}.py"))
    modules = (importlib.import_module(f"{_HOME}.{folder}.{_MODULE}") for folder in folders)
    found = {each.problem: each for each in (module.IN_BUILDS for module in modules)}
    return dict(sorted(found.items(), key=lambda item: (item[0] != first, item[0])))


def like_at(level: str, own: InBuilds, problems: Mapping[str, InBuilds]) -> InBuilds | None:
    """Return the problem of which policies take the decisions of ``own`` at ``level``, if any."""
    able = (each for each in problems.values() if each.policy == own.policy)
    return next((each for each in able if level in each.levels), None)


def in_lto() -> InLto:
    """Return what a link by LTO means for the built-in policies of all problems."""
    all_parts = [each.in_lto for each in problems_in_builds(first="").values()]
    return InLto(
        instead={name: like for each in all_parts for name, like in each.instead.items()},
        only={name: like for each in all_parts for name, like in each.only.items()},
        unmade={name: what for each in all_parts for name, what in each.unmade.items()},
        starts={name: like for each in all_parts for name, like in each.starts.items()},
    )


def made_for(policies: Sequence[str], *, lto: bool) -> tuple[str, ...]:
    """Return ``policies`` with those that change nothing inside LTO replaced by their likes there.

    :param policies: names of built-ins.
    :param lto: whether they decide inside LTO; otherwise nothing is replaced.
    """
    likes = in_lto().instead if lto else {}
    return tuple(likes.get(name, name) for name in policies)


def search_starts(policies: Sequence[str], *, lto: bool) -> tuple[str, ...]:
    """Return the built-in policies of which a search starts from the best.

    :param policies: those that searches without LTO start from.
    :param lto: whether the search is of decisions inside LTO.
    """
    likes = in_lto().starts if lto else {}
    further = tuple(likes[name] for name in policies if name in likes)
    return made_for(policies, lto=lto) + further
