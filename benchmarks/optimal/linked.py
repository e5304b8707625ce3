"""Leave out of a corpus's programs the members of static libraries that the linker does not take.

A program that links a library of 200 modules and takes three of them is a program of few modules:
so it is built quickly, and a search that counts whole-program compiles counts no other modules.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import link_command
from nestor.errors import NestorError
from nestor.temporary import temporary_folder


def taken_only(corpus: Corpus, toolchain: Toolchain) -> Corpus:
    """Return ``corpus`` with the modules in each program that the linker takes of it.

    :raises NestorError: if a module or a program cannot be built.
    """
    with temporary_folder("linked") as name:
        objects = {}
        for number, module in enumerate(corpus.modules):
            objects[module.name] = Path(name) / f"{number}.o"
            command = compile_command(
                toolchain, module.options, corpus.bitcode(module), objects[module.name]
            )
            outcome = run(command)
            if not outcome.ok:
                raise NestorError(f"{module.name}: {outcome.reason}")
        programs = [_taken(corpus, one, objects, toolchain, Path(name)) for one in corpus.programs]
    return replace(corpus, programs=tuple(programs))


def _taken(
    corpus: Corpus,
    program: Program,
    objects: Mapping[str, Path],
    toolchain: Toolchain,
    folder: Path,
) -> Program:
    command = link_command(toolchain, corpus, program, objects, folder / "program")
    trace = folder / "trace"
    outcome = run([*command, "-Wl,--trace"], stdout=trace)
    if not outcome.ok:
        raise NestorError(f"{program.name}: {outcome.reason}")
    files = set(trace.read_text().splitlines())
    inputs = [
        one for one in program.inputs if one.kind != "module" or str(objects[one.value]) in files
    ]
    return replace(program, inputs=tuple(inputs))
