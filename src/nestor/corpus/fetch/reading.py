"""Read recipes from ``corpus/recipes``: one TOML file for each project, and the list of tiers.

A file names the sources and what they build; its steps are tables of one command each::

    steps = [
      { configure = ["./configure"] },              # run, not captured
      { run = ["make", "CC=@CC@"] },                # run and captured
      { cmake = ["-DTESTS=OFF"], source = "lib" },  # configure into the folder "build"
      { ninja = ["target"] },                       # build targets in the folder "build"
      { examples = ["a.cc"], options = ["-I."], libraries = ["x.o"] },  # a program for each file
      { shared = "tone" },                          # a step of shared.toml
    ]
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from nestor.corpus.fetch.recipe import Recipe, Step
from nestor.corpus.model import SPLITS
from nestor.errors import NestorError

_REQUIRED: Final = frozenset({"version", "licence", "style", "steps", "sources", "programs"})
_OPTIONAL: Final = frozenset({"package", "split", "inputs"})
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

_CMAKE: Final = (
    "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
    # Only the bitcode is kept, which the wrapper makes: build the rest as fast as possible.
    "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG",
    # Without the old default -rdynamic, which keeps everything alive at link time.
    "-DCMAKE_POLICY_DEFAULT_CMP0065=NEW",
    "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
)  # fmt: skip


class RecipeError(NestorError):
    """A recipe, or the list of tiers, that cannot be used; the text names the file and the key."""


def read_tiers(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of the projects of each tier in ``folder/tiers.toml``, each once, in order.

    :raises RecipeError: if the file cannot be used.
    """
    path = folder / "tiers.toml"
    tiers: dict[str, tuple[str, ...]] = {}
    for name, table in _read(path).items():
        with _Context(path, name):
            _check_keys(table, {"projects"}, {"includes"})
            included = _words(table.get("includes", []), "includes")
            missing = [other for other in included if other not in tiers]
            if missing:
                raise ValueError(f"includes {missing[0]}, which is no tier above it")
            projects = [project for other in included for project in tiers[other]]
            tiers[name] = tuple(dict.fromkeys(projects + _words(table["projects"], "projects")))
    return tiers


def read_recipes(folder: Path, projects: Iterable[str]) -> tuple[Recipe, ...]:
    """Return the recipes of ``projects`` from the files ``folder/projects/<project>.toml``.

    :raises RecipeError: if one of them is not there or cannot be used.
    """
    shared_path = folder / "shared.toml"
    shared: dict[str, Step] = {}
    for name, table in _read(shared_path).items():
        with _Context(shared_path, name):
            (shared[name],) = _steps([table], {})
    return tuple(_recipe(folder / "projects" / f"{name}.toml", shared) for name in projects)


def _recipe(path: Path, shared: Mapping[str, Step]) -> Recipe:
    table = _read(path)
    with _Context(path):
        _check_keys(table, _REQUIRED, _OPTIONAL)
        project, split = path.stem, table.get("split", "train")
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}; write one of {', '.join(SPLITS)}")
        sources = _texts(table["sources"], "sources")
        wrong = [name for name, digest in sources.items() if not _SHA256.fullmatch(digest)]
        if wrong or not sources:
            raise ValueError(f"sources needs the sha256 of {wrong[0] if wrong else 'a tarball'}")
        programs = _table(table["programs"], "programs")
        return Recipe(
            project=project,
            package=_text(table.get("package", project), "package"),
            version=_text(table["version"], "version"),
            sources=sources,
            licence=_text(table["licence"], "licence"),
            steps=_steps(table["steps"], shared),
            programs={name: tuple(_words(value, name)) for name, value in programs.items()},
            split=split,
            style=_text(table["style"], "style"),
            inputs=_texts(table.get("inputs", {}), "inputs"),
        )


def _steps(tables: object, shared: Mapping[str, Step]) -> tuple[Step, ...]:
    if not isinstance(tables, list) or not tables:
        raise TypeError("steps must be a list of tables")
    steps: list[Step] = []
    for number, table in enumerate(tables, 1):
        where = f"step {number}"
        kinds = [kind for kind in _KINDS if kind in _table(table, where)]
        if len(kinds) != 1:
            raise ValueError(f"{where} needs exactly one of {', '.join(_KINDS)}")
        (kind,) = kinds
        make, more = _KINDS[kind]
        _check_keys(table, {kind}, more, where)
        if kind != "shared":
            steps += make(_words(table[kind], f"{kind} of {where}"), table)
        elif table[kind] in shared:
            steps.append(shared[table[kind]])
        else:
            raise ValueError(f"{where} names {table[kind]!r}, which shared.toml does not have")
    return tuple(steps)


def _run(words: list[str], _: Mapping[str, Any]) -> list[Step]:
    return [Step(tuple(words))]


def _configure(words: list[str], _: Mapping[str, Any]) -> list[Step]:
    return [Step(tuple(words), capture=False)]


def _cmake(settings: list[str], table: Mapping[str, Any]) -> list[Step]:
    source = _text(table.get("source", "."), "source")
    return [Step(("cmake", "-S", source, *_CMAKE, *settings), capture=False)]


def _ninja(targets: list[str], _: Mapping[str, Any]) -> list[Step]:
    return [Step(("ninja", "-C", "build", "-j@JOBS@", *targets))]


def _examples(files: list[str], table: Mapping[str, Any]) -> list[Step]:
    """Compile and link each C++ file to a program of its name, in the top folder."""
    options = _words(table.get("options", []), "options")
    libraries = _words(table.get("libraries", []), "libraries")
    steps = []
    for file in files:
        name = PurePosixPath(file).stem
        steps.append(Step(("@CXX@", *options, "-c", file, "-o", f"{name}.o")))
        steps.append(Step(("@CXX@", f"{name}.o", *libraries, "-o", name)))
    return steps


_Maker = Callable[[list[str], Mapping[str, Any]], list[Step]]
_KINDS: Final[Mapping[str, tuple[_Maker, frozenset[str]]]] = {
    "run": (_run, frozenset()),
    "configure": (_configure, frozenset()),
    "cmake": (_cmake, frozenset({"source"})),
    "ninja": (_ninja, frozenset()),
    "examples": (_examples, frozenset({"options", "libraries"})),
    "shared": (_run, frozenset()),
}
"""Kinds of steps: what makes them of the words of their command, and their other keys."""


class _Context:
    """Turns what is wrong with a table into one sentence that names the file."""

    def __init__(self, path: Path, table: str = "") -> None:
        self._where = f"{path}, [{table}]" if table else str(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (ValueError, TypeError)):
            raise RecipeError(f"{self._where}: {error}.") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path} does not exist; write the recipe, or mend the tier.") from None
    except (OSError, ValueError) as error:
        raise RecipeError(f"{path} cannot be read as TOML: {error}.") from error


def _check_keys(
    table: object, required: Iterable[str], optional: Iterable[str], where: str = ""
) -> None:
    found = _table(table, where or "the table").keys()
    before = f"{where}: " if where else ""
    missing = sorted(set(required) - found)
    if missing:
        raise ValueError(f"{before}the key {missing[0]!r} is missing")
    others = sorted(found - set(required) - set(optional))
    if others:
        allowed = ", ".join(sorted({*required, *optional}))
        raise ValueError(f"{before}{others[0]!r} is no key; there are: {allowed}")


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{where} must be a table")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{where} must be a text")
    return value


def _texts(value: object, where: str) -> dict[str, str]:
    return {key: _text(item, f"{key} of {where}") for key, item in _table(value, where).items()}


def _words(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"{where} must be a list of texts")
    return list(value)
