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
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from nestor.corpus.fetch.recipe import Recipe, Step, TierContent
from nestor.corpus.fetch.tables import (
    Context,
    check_keys,
    read_toml,
    table_of,
    text_of,
    texts_of,
    words_of,
)
from nestor.corpus.level import DEFAULT_LEVEL, parse_level
from nestor.corpus.model import SPLITS

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


def read_tiers(folder: Path) -> dict[str, TierContent]:
    """Return what each tier in ``folder/tiers.toml`` is made of.

    :raises RecipeError: if the file cannot be used.
    """
    path = folder / "tiers.toml"
    tiers: dict[str, TierContent] = {}
    for name, table in read_toml(path).items():
        with Context(path, name):
            check_keys(table, {"projects"}, {"includes", "level", "workloads"})
            included = words_of(table.get("includes", []), "includes")
            missing = [other for other in included if other not in tiers]
            if missing:
                raise ValueError(f"includes {missing[0]}, which is no tier above it")
            projects = [project for other in included for project in tiers[other].projects]
            tiers[name] = TierContent(
                tuple(dict.fromkeys(projects + words_of(table["projects"], "projects"))),
                parse_level(table.get("level", DEFAULT_LEVEL)),
                table.get("workloads", False) is True,
            )
    return tiers


def read_recipes(folder: Path, projects: Iterable[str]) -> tuple[Recipe, ...]:
    """Return the recipes of ``projects`` from the files ``folder/projects/<project>.toml``.

    :raises RecipeError: if one of them is not there or cannot be used.
    """
    shared_path = folder / "shared.toml"
    shared: dict[str, Step] = {}
    for name, table in read_toml(shared_path).items():
        with Context(shared_path, name):
            (shared[name],) = _steps([table], {})
    return tuple(_recipe(folder / "projects" / f"{name}.toml", shared) for name in projects)


def _recipe(path: Path, shared: Mapping[str, Step]) -> Recipe:
    table = read_toml(path)
    with Context(path):
        check_keys(table, _REQUIRED, _OPTIONAL)
        project, split = path.stem, table.get("split", "train")
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}; write one of {', '.join(SPLITS)}")
        sources = texts_of(table["sources"], "sources")
        wrong = [name for name, digest in sources.items() if not _SHA256.fullmatch(digest)]
        if wrong or not sources:
            raise ValueError(f"sources needs the sha256 of {wrong[0] if wrong else 'a tarball'}")
        programs = table_of(table["programs"], "programs")
        return Recipe(
            project=project,
            package=text_of(table.get("package", project), "package"),
            version=text_of(table["version"], "version"),
            sources=sources,
            licence=text_of(table["licence"], "licence"),
            steps=_steps(table["steps"], shared),
            programs={name: tuple(words_of(value, name)) for name, value in programs.items()},
            split=split,
            style=text_of(table["style"], "style"),
            inputs=texts_of(table.get("inputs", {}), "inputs"),
        )


def _steps(tables: object, shared: Mapping[str, Step]) -> tuple[Step, ...]:
    if not isinstance(tables, list) or not tables:
        raise TypeError("steps must be a list of tables")
    steps: list[Step] = []
    for number, table in enumerate(tables, 1):
        where = f"step {number}"
        kinds = [kind for kind in _KINDS if kind in table_of(table, where)]
        if len(kinds) != 1:
            raise ValueError(f"{where} needs exactly one of {', '.join(_KINDS)}")
        (kind,) = kinds
        make, more = _KINDS[kind]
        check_keys(table, {kind}, more, where)
        if kind != "shared":
            steps += make(words_of(table[kind], f"{kind} of {where}"), table)
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
    source = text_of(table.get("source", "."), "source")
    return [Step(("cmake", "-S", source, *_CMAKE, *settings), capture=False)]


def _ninja(targets: list[str], _: Mapping[str, Any]) -> list[Step]:
    return [Step(("ninja", "-C", "build", "-j@JOBS@", *targets))]


def _examples(files: list[str], table: Mapping[str, Any]) -> list[Step]:
    """Compile and link each C++ file to a program of its name, in the top folder."""
    options = words_of(table.get("options", []), "options")
    libraries = words_of(table.get("libraries", []), "libraries")
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
