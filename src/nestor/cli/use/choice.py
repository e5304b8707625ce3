"""What a user wants of several problems, as options of the plugin."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.use.words import Words
from nestor.corpus.level import LEVELS
from nestor.errors import NestorError
from nestor.files import read_regular_text
from nestor.problem.in_builds import InBuilds, TextKind, like_at
from nestor.problem.overrides import MOST_BYTES
from nestor.rollout.ready import StoredPolicy, stored_policy, stored_text
from nestor.text_file import header_of

_LEVELS_TEXT: Final = ", ".join(LEVELS)
_POLICY_FILE: Final = "policy.safetensors"
_OVERRIDES_FILE: Final = "overrides.txt"
_SUMMARY_FILE: Final = "summary.txt"
DEFAULT_POLICY: Final = "default"
"""What the plugin's option takes for the stock heuristic."""


@dataclass(frozen=True)
class Option:
    """One option of the plugin."""

    name: str
    value: Path | str | None = None
    """A file, a word, or None for a switch."""
    file_name: str = ""
    """What a copy of the file is called, before its digest is put in."""

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


@dataclass(frozen=True)
class Choice:
    """The options for the plugin, and the problems that it is to decide."""

    problems: tuple[str, ...]
    options: tuple[Option, ...]
    trials: str | None = None
    """The option with the folder in which the plugin keeps what it has tried; None if no policy
    lets it try anything."""
    best: bool = False
    """Functions are compiled on trial, in forked children of a compiler with one thread: with
    ``--best`` or a portfolio."""

    @property
    def has_summary(self) -> bool:
        """Whether modules are told of their program."""
        return any(option.file_name == _SUMMARY_FILE for option in self.options)


def choose(own: Words, problems: Mapping[str, InBuilds]) -> Choice:
    """Return what ``own`` asks for; policies and texts become copies in the cache.

    :param problems: those that a build can have decided, first the one that is meant where several
        have a policy of one name.
    :raises NestorError: if something cannot be used, or not together.
    """
    if own.problem is not None and own.problem not in problems:
        raise NestorError(
            f"There is no problem {own.problem!r} that a build can leave to a policy; there are"
            f" {', '.join(sorted(problems))}."
        )
    policies = _policies(own, problems)
    if not any(problems[name].summary for name in policies):
        own = own.without_offered()
    best = own.best or any(each.is_portfolio for several in policies.values() for each in several)
    texts = _overrides(own.overrides, [each.overrides for each in problems.values()])
    decided = [
        each for name, each in problems.items() if name in policies or each.overrides in texts
    ]
    options = [
        Option(each.policy, policy.place, _POLICY_FILE)
        for name, each in problems.items()
        for policy in policies.get(name, ())
    ]
    options += [Option(kind.option, path, _OVERRIDES_FILE) for kind, path in texts.items()]
    trials = next(
        (
            problems[name].trials
            for name, several in policies.items()
            for policy in several
            if not problems[name].tried.isdisjoint(policy.features)
        ),
        None,
    )
    if own.summary is not None:
        options.append(_summary(own.summary, decided, problems))
    if own.best:
        options.append(_best(policies, problems))
    return Choice(tuple(each.problem for each in decided), tuple(options), trials=trials, best=best)


def _policies(own: Words, problems: Mapping[str, InBuilds]) -> dict[str, list[StoredPolicy]]:
    """Return the policies for each problem, as the plugin's option takes them."""
    found: dict[str, list[StoredPolicy]] = {}
    words: dict[str, list[str]] = {}
    for word in own.policies:
        policy = stored_policy(word, list(problems))
        if policy.problem not in problems:
            raise NestorError(
                f"The policy {word} is for {policy.problem}, and a build can use policies for"
                f" {', '.join(sorted(problems))}."
            )
        found.setdefault(policy.problem, []).append(policy)
        words.setdefault(policy.problem, []).append(word)
    if own.level is not None:
        _check_level(words, own.level, problems)
    for name, several in words.items():
        if len(several) > 1 and not (own.best and problems[name].best):
            remedy = ", or add --best, which keeps the best of them for each function"
            raise NestorError(
                f"{' and '.join(several)} are for the same problem, {name}: name one of them"
                f"{remedy if problems[name].best else ''}."
            )
    if own.problem is not None and own.problem not in found:
        raise NestorError(
            f"None of the policies ({', '.join(own.policies)}) is for {own.problem}, which"
            " --problem names."
        )
    return found


def _check_level(
    words: Mapping[str, Sequence[str]], level: str, problems: Mapping[str, InBuilds]
) -> None:
    """Raise NestorError, one sentence, if policies decide nothing at ``level``.

    :param words: their names by problem. Of those that take the same decisions at other levels one
        is enough.
    """
    if level not in LEVELS:
        raise NestorError(f"'{level}' is no level of optimisation: write one of {_LEVELS_TEXT}.")
    acting = {problems[name].policy for name in words if level in problems[name].levels}
    for name, several in words.items():
        problem = problems[name]
        if not problem.levels or problem.policy in acting or several == [DEFAULT_POLICY]:
            continue
        like = like_at(level, problem, problems)
        usual = like.usual if like else None
        raise NestorError(
            f"The policy {several[0]} is for {name}, which is decided at"
            f" {' and '.join(problem.levels)}: at {level} it would decide"
            f" nothing{f'; {usual} decides there' if usual else ''}."
        )


def _overrides(paths: Sequence[str], possible: Iterable[TextKind]) -> dict[TextKind, Path]:
    """Return the copies of the files of overrides by what they are about."""
    kinds = {kind.header: kind for kind in possible}
    found: dict[TextKind, Path] = {}
    for word in paths:
        path = Path(word)
        kind = kinds.get(header_of(_text(path, kinds.values())))
        if kind is None:
            raise NestorError(
                f"{path}: These are no overrides: the first line is none of"
                f" {', '.join(repr(each) for each in kinds)}."
            )
        if kind in found:
            raise NestorError(
                f"{path}: A compile takes one file of '{kind.header}': put the lines of all into"
                " one."
            )
        found[kind] = stored_text(path, kind)
    return {kind: found[kind] for kind in kinds.values() if kind in found}


def _text(path: Path, kinds: Iterable[TextKind]) -> str:
    makers = dict.fromkeys(maker for kind in kinds for maker in kind.makers)
    remedy = f"{' or '.join(makers)} makes such a file"
    return read_regular_text(path, "overrides", limit=MOST_BYTES, remedy=remedy)


def _summary(path: str, decided: Iterable[InBuilds], problems: Mapping[str, InBuilds]) -> Option:
    kind = next((each.summary for each in decided if each.summary is not None), None)
    if kind is None:
        readers = ", ".join(name for name, each in problems.items() if each.summary is not None)
        raise NestorError(f"--summary is for policies for {readers}: name one, or leave it out.")
    return Option(kind.option, stored_text(Path(path), kind), _SUMMARY_FILE)


def _best(policies: Collection[str], problems: Mapping[str, InBuilds]) -> Option:
    """Return the switch; one switch serves all problems that have it."""
    for each in problems.values():
        if each.problem in policies and each.best is not None:
            return Option(each.best)
    able = " or ".join(sorted(name for name, each in problems.items() if each.best))
    raise NestorError(f"--best needs a policy for {able}.")
