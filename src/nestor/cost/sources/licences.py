"""Decide whether an SPDX licence expression can be met by a list of accepted licences."""

import re
from collections.abc import Collection
from typing import Final

_TOKEN: Final = re.compile(r"\s*([()]|[^\s()]+)")
_DEEPEST: Final = 50


def accepts(expression: str | None, accepted: Collection[str]) -> bool:
    """Tell whether ``expression`` can be met with licences of ``accepted`` only.

    ``A OR B`` needs one of them, ``A AND B`` both; ``A WITH x`` is met by ``A`` or by itself. Case
    does not matter. Text that is not an expression (SPDX 2.3, annex D) is never met.
    """
    tokens = _TOKEN.findall(expression or "")
    names = {" ".join(name.upper().split()) for name in accepted}
    try:
        met, rest = _alternatives([token.upper() for token in tokens], names, 0)
    except _MalformedError:
        return False
    return met and not rest


class _MalformedError(Exception):
    """Not an expression."""


def _alternatives(tokens: list[str], names: set[str], depth: int) -> tuple[bool, list[str]]:
    met, rest = _together(tokens, names, depth)
    while rest and rest[0] == "OR":
        also, rest = _together(rest[1:], names, depth)
        met = met or also
    return met, rest


def _together(tokens: list[str], names: set[str], depth: int) -> tuple[bool, list[str]]:
    met, rest = _one(tokens, names, depth)
    while rest and rest[0] == "AND":
        also, rest = _one(rest[1:], names, depth)
        met = met and also
    return met, rest


def _one(tokens: list[str], names: set[str], depth: int) -> tuple[bool, list[str]]:
    if not tokens or tokens[0] in (")", "OR", "AND", "WITH") or depth > _DEEPEST:
        raise _MalformedError
    if tokens[0] == "(":
        met, rest = _alternatives(tokens[1:], names, depth + 1)
        if not rest or rest[0] != ")":
            raise _MalformedError
        return met, rest[1:]
    name, rest = tokens[0], tokens[1:]
    if rest and rest[0] == "WITH":
        if len(rest) < 2:
            raise _MalformedError
        return name in names or f"{name} WITH {rest[1]}" in names, rest[2:]
    return name in names, rest
