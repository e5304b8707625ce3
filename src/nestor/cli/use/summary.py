"""``nestor summary``: what the objects of an ordinary build say of their program."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.markup import escape

from nestor.cli.console import counted, print_json, progress, stdout
from nestor.cli.options import OutputFile
from nestor.compiler.objects import ObjectError
from nestor.corpus.built_objects import find_objects
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.temporary import temporary_folder

if TYPE_CHECKING:
    from nestor.problems.inlining_size.summary.object_uses import ObjectUses
    from nestor.problems.inlining_size.summary.program_summary import ProgramSummary


@dataclass(frozen=True)
class Summary:
    r"""Summarise a program for policies that want to know what one module cannot see.

    Reads the objects of an ordinary build by the stock compiler: copies, bytes, calls and users
    of each function. 'nestor clang', 'nestor clang++' and 'nestor flags' take the file as
    --summary. Build with -Oz -ffunction-sections -fdata-sections, name the objects of one
    program, and make the file again when much has changed: what it does not know is missing to
    the policy, as without it.

    Examples:
        make CC=clang-22 CFLAGS="-Oz -ffunction-sections -fdata-sections"
        nestor summary build/ --out program.txt
        nestor summary main.o libparse.a --out program.txt --link no-gc
        nestor summary .libs/ --out library.txt --exports
        make clean all CC="nestor clang distilled --summary $PWD/program.txt --" \
            CFLAGS="-Oz -ffunction-sections -fdata-sections"
    """

    places: tyro.conf.Positional[tuple[Path, ...]]
    """Objects, static libraries, and folders that hold them."""
    out: OutputFile
    """The file to write."""
    link: LinkMode = "gc"
    """How the program will be linked: with --gc-sections, without, or with --icf=all too."""
    exports: bool = False
    """They become a shared library, or a program linked with -rdynamic: what others name stays."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Read, write the summary and say what it holds."""
        from nestor.problems.inlining_size.summary import object_uses  # takes xxhash

        with progress() as report, temporary_folder("summary") as text:
            built = find_objects(self.places, Path(text))
            uses = []
            for number, item in enumerate(built.objects):
                report("Reading objects", number, len(built.objects))
                try:
                    uses.append(object_uses.read(item.path))
                except ObjectError as error:
                    said = str(error).replace(str(item.path), item.name)
                    raise NestorError(said) from None
            report("Reading objects", len(uses), len(uses))
        others = [object_uses.users_of_exports(uses)] if self.exports else []
        summary = object_uses.combine([*uses, *others], self.link)
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            summary.save(self.out)
        except OSError as error:
            raise NestorError(f"{self.out} cannot be written: {error.strerror}.") from None
        warnings = _warnings(uses, summary, built.skipped)
        if self.json:
            print_json(
                {
                    "out": str(self.out),
                    "link": self.link,
                    "objects": len(uses),
                    "functions": len(summary.functions),
                    "skipped": built.skipped,
                    "warnings": warnings,
                }
            )
            return 0
        stdout.print(
            f"{escape(str(self.out))}: {counted(len(summary.functions), 'function')} of"
            f" {counted(len(uses), 'object')}, to be linked {self.link}",
            *(f"[yellow]warning:[/] {escape(warning)}" for warning in warnings),
            f"use it:  nestor clang distilled --summary {escape(str(self.out))} -- -Oz …",
            sep="\n",
            soft_wrap=True,
        )
        return 0


def _warnings(uses: "Sequence[ObjectUses]", summary: "ProgramSummary", skipped: int) -> list[str]:
    """Return what makes a summary say less than it could, and the remedy."""
    from nestor.problems.inlining_size.summary.program_summary import function_id

    warnings = []
    if skipped:
        warnings.append(
            f"{skipped} files that are named like objects are none, or bitcode of -flto: left out."
        )
    together = sum(not item.apart for item in uses)
    if together:
        warnings.append(
            f"{together} of {len(uses)} objects were compiled without -ffunction-sections: calls"
            " within them cannot be seen, so build with it."
        )
    foreign = sum(not item.by_clang for item in uses)
    if foreign:
        warnings.append(
            f"{foreign} of {len(uses)} objects were made by another compiler than clang, which"
            " inlines otherwise: build with the clang that will use the summary."
        )
    main = summary.functions.get(function_id("main"))
    if main is not None and main.copies > 1:
        warnings.append(
            f"{main.copies} objects define main: counts of several programs are added up, so name"
            " the objects of one."
        )
    return warnings
