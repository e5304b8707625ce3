"""Checked tables of the TOML files in ``corpus/recipes``; what is wrong is said in one sentence."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nestor.errors import NestorError


class RecipeError(NestorError):
    """A recipe, or the list of tiers, that cannot be used; the text names the file and the key."""


class Context:
    """Turns what is wrong with a table into one sentence that names the file."""

    def __init__(self, path: Path, table: str = "") -> None:
        self._where = f"{path}, [{table}]" if table else str(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (ValueError, TypeError)):
            raise RecipeError(f"{self._where}: {error}.") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path} does not exist; write the recipe, or mend the tier.") from None
    except (OSError, ValueError) as error:
        raise RecipeError(f"{path} cannot be read as TOML: {error}.") from error


def check_keys(
    table: object, required: Iterable[str], optional: Iterable[str], where: str = ""
) -> None:
    """Refuse a table that lacks a required key, or has one that is neither."""
    found = table_of(table, where or "the table").keys()
    before = f"{where}: " if where else ""
    missing = sorted(set(required) - found)
    if missing:
        raise ValueError(f"{before}the key {missing[0]!r} is missing")
    others = sorted(found - set(required) - set(optional))
    if others:
        allowed = ", ".join(sorted({*required, *optional}))
        raise ValueError(f"{before}{others[0]!r} is no key; there are: {allowed}")


def table_of(value: object, where: str) -> dict[str, Any]:
    """Return ``value`` if it is a table."""
    if not isinstance(value, dict):
        raise TypeError(f"{where} must be a table")
    return value


def text_of(value: object, where: str) -> str:
    """Return ``value`` if it is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{where} must be a text")
    return value


def texts_of(value: object, where: str) -> dict[str, str]:
    """Return ``value`` if it is a table of texts."""
    return {key: text_of(item, f"{key} of {where}") for key, item in table_of(value, where).items()}


def words_of(value: object, where: str) -> list[str]:
    """Return ``value`` if it is a list of texts."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"{where} must be a list of texts")
    return list(value)
