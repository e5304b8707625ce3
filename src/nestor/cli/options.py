"""How the options of a command are read and explained: one treatment for all commands.

A command is a frozen dataclass with a docstring; tyro makes the options of its fields. This module
adds what all commands share:

- a switch that is on by default is shown as a pair, ``--sweep, --no-sweep``, so that its help,
  which says what the switch does, is not read as the effect of ``--no-sweep``;
- a default is shown where it says something: not ``False``, ``None`` or an empty list;
- every command takes ``--quiet``;
- a number is finite and 0 or more, or what else its name says (:mod:`nestor.numbers`);
- a file or folder that a command writes (:data:`OutputFile`, :data:`OutputFolder`) is refused
  before any work, where it cannot be written.
"""

import argparse
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_type_hints

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from nestor.cli import remarks
from nestor.errors import NestorError
from nestor.files import refuse_folder, refuse_place
from nestor.numbers import refuse_number

_CONFIG = (tyro.conf.PositionalMetavarFromFieldName,)
_QUIET = "Print results and errors only: no progress and no remarks."

OutputFile = Annotated[Path, refuse_place]
"""The type of an option that names the file for what a command has found."""

OutputFolder = Annotated[Path, refuse_folder]
"""The type of an option that names the folder for what a command makes."""


def parse(kind: type, name: str, words: Sequence[str]) -> Any:
    """Return the command of a command line; end the process after ``--help`` or a wrong option.

    :param kind: the command's dataclass.
    :param name: the words of the command, after ``nestor``.
    :param words: what follows them.
    :raises NestorError: if a number cannot be what it is, or what is to be written cannot be.
    """
    command: Any = tyro.cli(
        kind,
        prog=f"nestor {name}",
        description=_description(kind),
        args=_merged(kind, name, _attached(words)),
        config=_CONFIG,
        registry=_registry(kind),
    )
    for option, hint, value in _values(command):
        if option != "--compiles":  # of which 'nestor tune' says more
            refuse_number(option, value)
        for mark in (mark for part in (hint, *get_args(hint)) for mark in _marks(part)):
            if mark in (refuse_place, refuse_folder):
                mark(value)
    return command


def refuse_idle(settings: Any, where: str, *names: str, prefix: str = "--") -> None:
    """Refuse options that a user has changed where they have no effect.

    :param settings: a command, or settings that are among its options.
    :param where: ends the sentence: "with --logs".
    :param names: of the fields; none means all.
    :param prefix: of the options' names.
    :raises NestorError: if one of them is not what it is by default.
    """
    for field in fields(settings):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        value = getattr(settings, field.name)
        if value == default or (names and field.name not in names):
            continue
        option = prefix + field.name.replace("_", "-")
        if is_dataclass(value):
            refuse_idle(value, where, prefix=f"{option}.")
        raise NestorError(f"{option} has no effect {where}: leave it out.")


def _values(command: Any, prefix: str = "--") -> Iterator[tuple[str, Any, Any]]:
    """Yield the options that have a value: name, type and value, those of settings too."""
    for name, hint in get_type_hints(type(command), include_extras=True).items():
        value = getattr(command, name)
        option = prefix + name.replace("_", "-")
        if is_dataclass(value):
            unprefixed = any(
                mark is tyro.conf.OmitArgPrefixes or getattr(mark, "name", None) == ""
                for mark in _marks(hint)
            )
            yield from _values(value, prefix if unprefixed else f"{option}.")
        elif value is not None:
            yield option, hint, value


def _marks(hint: Any) -> tuple[Any, ...]:
    """Return what a type is annotated with."""
    return getattr(hint, "__metadata__", ())


def parser(kind: type, name: str) -> argparse.ArgumentParser:
    """Return the options of a command as a parser that can be looked through."""
    with warnings.catch_warnings():
        # There is no other public access to the options; pyproject.toml bounds tyro's version.
        warnings.simplefilter("ignore", DeprecationWarning)
        copy = tyro.extras.get_parser(
            kind,
            prog=f"nestor {name}",
            description=_description(kind),
            config=_CONFIG,
            registry=_registry(kind),
        )
    return cast(argparse.ArgumentParser, copy)  # tyro's copy of the class


def _attached(words: Sequence[str]) -> list[str]:
    """Return a command line with the value of --level attached to it: --level=-O9.

    tyro takes a level that it does not know for an option, and says that the value is missing.
    """
    attached: list[str] = []
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        if word.startswith("-O") and attached[-1:] == ["--level"]:
            attached[-1] += f"={word}"
        else:
            attached.append(word)
    return [*attached, *words[end:]]


def _merged(kind: type, name: str, words: Sequence[str]) -> list[str]:
    """Return a command line in which an option with several values is given once.

    ``--policy a --policy b`` means ``--policy a b``; tyro alone would drop the first.
    """
    end = words.index("--") if "--" in words else len(words)
    starts = [number for number, word in enumerate(words[:end]) if _is_option(word)]
    names = [words[number].partition("=")[0] for number in starts]
    repeated = {one for one in names if names.count(one) > 1}
    if not repeated:
        return list(words)
    lists = {
        option
        for action in parser(kind, name)._actions
        if action.nargs in ("*", "+")
        for option in action.option_strings
    }
    segments: dict[object, list[str]] = {}
    for one, start, stop in zip(names, starts, [*starts[1:], end], strict=True):
        if one in repeated & lists:
            _, equals, value = words[start].partition("=")
            segments.setdefault(one, [one]).extend([value] if equals else [])
            segments[one].extend(words[start + 1 : stop])
        else:
            segments[start] = list(words[start:stop])
    joined = [word for segment in segments.values() for word in segment]
    return [*words[: starts[0]], *joined, *words[end:]]


def _is_option(word: str) -> bool:
    """Tell whether a word of a command line is an option, long or short, and no value."""
    return word.startswith("-") and not re.fullmatch(r"-|-\.?\d.*", word)


def _description(kind: type) -> str:
    """Return the docstring with the lines of each paragraph joined; what is indented stays."""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.getdoc(kind) or "")


def _registry(kind: type) -> ConstructorRegistry:
    """Return the rules by which the fields of ``kind`` and of its settings become options."""
    registry = ConstructorRegistry()
    busy = False

    def rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        nonlocal busy
        if busy or not is_dataclass(info.type):
            return None
        busy = True  # the call below asks all rules, this one too
        try:
            spec = ConstructorRegistry.get_struct_spec(info)
        finally:
            busy = False
        if not isinstance(spec, StructConstructorSpec):
            return None
        fields = tuple(map(_explained, spec.fields))
        if info.type is not kind:
            return replace(spec, fields=fields)
        return StructConstructorSpec(_with_quiet(spec.instantiate), (*fields, _quiet()))

    registry.struct_rule(rule)
    return registry


def _explained(field: StructFieldSpec) -> StructFieldSpec:
    """Return a field with the help that its default needs."""
    field = replace(field, helptext=_on_one_line(field.helptext))
    markers: tuple[Any, ...]
    if field.default is True:
        markers = (tyro.conf.arg(help_behavior_hint="(default: yes)"),)
    elif field.default is False:
        markers = (tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint=""))
    elif field.default is None:
        markers = (tyro.conf.DisallowNone, tyro.conf.arg(help_behavior_hint=""))
    else:
        markers = (tyro.conf.arg(help_behavior_hint=_default),)
    return replace(field, type=Annotated[(field.type, *markers)])  # type: ignore[arg-type]


def _default(value: str) -> str:
    return f"(default: {value})" if value else ""


def _on_one_line(
    help_text: str | Callable[[], str | None] | None,
) -> str | Callable[[], str | None] | None:
    """Return a help text without the line breaks of the source."""
    if not callable(help_text):
        return None if help_text is None else " ".join(help_text.split())

    def joined() -> str | None:
        text = help_text()
        return None if text is None else " ".join(text.split())

    return joined


def _quiet() -> StructFieldSpec:
    switch: Any = Annotated[
        bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="", aliases=["-q"])
    ]
    return StructFieldSpec("quiet", switch, default=False, helptext=_QUIET)


def _with_quiet(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes the command and takes ``quiet`` besides its fields."""

    def make_quietly(*, quiet: bool, **fields: Any) -> Any:
        if quiet:
            remarks.silence()
        return make(**fields)

    return make_quietly
