"""The plugin with policies compiled in: one file that a compiler loads, without any option.

The policy files stand in the plugin as they are, and are read by the same code as files: so nothing
can differ but where the bytes come from.
"""

import shutil
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from typing import Final

from nestor.compiler.plugin import (
    FILE_NAME,
    Plugin,
    configure_and_build,
    ensure_plugin,
    keep_parts,
    parts_path,
    source_folder,
)
from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain, ToolchainError
from nestor.files import locked
from nestor.policy.names import NamedPolicy
from nestor.problem.in_builds import problems_in_builds
from nestor.progress import Progress, silent
from nestor.release.in_tree import PROBLEM, ReleaseError
from nestor.temporary import temporary_folder

_SOURCE: Final = """\
// Written by 'nestor release': the policies that this plugin carries.
#include "policy/Embedded.h"

#pragma clang diagnostic ignored "-Wpragmas"
#pragma clang diagnostic ignored "-Wc23-extensions"

{tables}
llvm::StringRef nestor::embeddedPolicy(llvm::StringRef Problem) {{
{choices}  return {{}};
}}
"""
_TABLE: Final = """\
alignas(16) static const unsigned char Policy{number}[] = {{
#embed "{file}"
}};
"""
_CHOICE: Final = """\
  if (Problem == "{problem}")
    return {{reinterpret_cast<const char *>(Policy{number}), sizeof(Policy{number})}};
"""


def levels_in_words(policies: Sequence[NamedPolicy]) -> str:
    """Return at which optimisation levels the policies decide, problem by problem."""
    words = {n: " and ".join(own) or "-O1 and above" for n, own in _levels(policies).items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{levels} ({name})" for name, levels in words.items())


def usual_level(policies: Sequence[NamedPolicy]) -> str:
    """Return an optimisation level at which at least one of the policies decides."""
    return next(chain.from_iterable(_levels(policies).values()), "-O2")


def _levels(policies: Sequence[NamedPolicy]) -> dict[str, tuple[str, ...]]:
    """Return by problem the optimisation levels at which it is decided, none if at each."""
    able = problems_in_builds(PROBLEM)
    own = [named.policy.metadata.problem for named in policies if named.policy is not None]
    return {name: able[name].levels for name in own}


def check_policies(policies: Sequence[NamedPolicy]) -> None:
    """Raise NestorError unless a plugin can carry these policies together."""
    able = problems_in_builds(PROBLEM)
    seen: dict[str, str] = {}
    for named in policies:
        if named.policy is None:
            raise ReleaseError(
                "'default' is the compiler's own heuristic: a build without a plugin has it."
            )
        problem = named.policy.metadata.problem
        if problem not in able:
            raise ReleaseError(
                f"{named.name} is for {problem}, and the plugin decides {', '.join(able)}."
            )
        if problem in seen:
            raise ReleaseError(
                f"{seen[problem]} and {named.name} are for the same problem, {problem}: name one"
                " of them."
            )
        seen[problem] = named.name


def build_plugin(
    toolchain: Toolchain, policies: Sequence[NamedPolicy], progress: Progress = silent
) -> bytes:
    """Return the plugin that carries ``policies``; the same bytes in whatever folder it is built.

    :param policies: as `check_policies` allows.
    :raises ToolchainError: if it cannot be built.
    """
    tables, choices = "", ""
    with temporary_folder("release") as name:
        folder = Path(name)
        for number, named in enumerate(policies):
            assert named.policy is not None
            file = f"{number}.safetensors"
            (folder / file).write_bytes(named.data)
            tables += _TABLE.format(number=number, file=file)
            choices += _CHOICE.format(number=number, problem=named.policy.metadata.problem)
        source = folder / "Embedded.cpp"
        source.write_text(_SOURCE.format(tables=tables, choices=choices))
        definitions = [f"-DNESTOR_EMBEDDED={source}", "-DCMAKE_MODULE_LINKER_FLAGS=-Wl,-s"]
        build = folder / "build"
        ensure_plugin(toolchain, progress)
        parts = parts_path(toolchain)

        def link() -> None:
            words = [*definitions, f"-DNESTOR_PARTS={parts}"]
            configure_and_build(toolchain, build, words, progress)

        try:
            link()
        except ToolchainError:  # the cache has lost them, or a part of them
            with locked(parts.with_name("lock")):  # one process compiles, and others wait
                try:
                    link()
                except ToolchainError:
                    shutil.rmtree(build, ignore_errors=True)
                    configure_and_build(toolchain, build, definitions, progress)
                    keep_parts(toolchain, build)
        return (build / FILE_NAME).read_bytes()


def check_objects(plugin: Plugin, content: bytes, policies: Sequence[NamedPolicy]) -> None:
    """Compile two small sources both ways, at a level of each policy, and compare.

    :param plugin: the usual plugin, which reads policies from files.
    :param content: the plugin that carries them.
    :raises ReleaseError: if an object differs.
    """
    able = problems_in_builds(PROBLEM)
    with temporary_folder("check") as name:
        folder = Path(name)
        released = folder / FILE_NAME
        released.write_bytes(content)
        options = []
        for number, named in enumerate(policies):
            assert named.policy is not None
            problem = named.policy.metadata.problem
            file = folder / f"{number}.safetensors"
            file.write_bytes(named.data)
            options.append(f"{able[problem].policy}={file}")
        by_file = plugin.driver_words(options)
        levels = dict.fromkeys(next(iter(own), "-O2") for own in _levels(policies).values())
        sources = sorted((source_folder() / "identity").glob("probe.c*"))
        for level, source in product(levels, sources):
            objects = [
                _compiled(plugin.toolchain, source, [level, *flags], folder / "probe.o")
                for flags in (by_file, [f"-fpass-plugin={released}"])
            ]
            if objects[0] != objects[1]:
                raise ReleaseError(
                    f"The plugin that carries the policies compiles {source.name} to another object"
                    " than the plugin that reads them from files: please report this."
                )


def _compiled(toolchain: Toolchain, source: Path, flags: Sequence[str], result: Path) -> bytes:
    compiler = toolchain.clang if source.suffix == ".c" else toolchain.clangxx
    done = run_tool([str(compiler), *flags, "-c", str(source), "-o", str(result)])
    if done.returncode != 0:
        raise ReleaseError(f"{source.name} cannot be compiled: {done.stderr.strip()[:300]}")
    return result.read_bytes()
