"""
Instructions of single compiles with the plugin over those without, which no other load changes.

    python -m benchmarks.compile_instructions CORPUS MODULE [--program NAME] [--compiles N]
        [--json FILE]

One module, whose name contains MODULE, is compiled from bitcode under callgrind: stock, with the
plugin idle, and under each policy, with a summary of the program NAME too. Where a policy's object
is not stock's, the back end compiles another program, which the count contains; the table says so.
Then an empty C file is compiled N times stock and under a policy, alternately, for the price of
loading: the difference of the medians of processor time.
"""

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import record
from benchmarks.compile_cpu import children_cpu_seconds, cost
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin
from nestor.compiler.process import environment
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.errors import NestorError
from nestor.files import sha256_of
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.rollout.local_pool import LocalPool
from nestor.rollout.ready import stored_policy

POLICIES: Final = ("default", "shipped", "distilled", "mlgo2020")
SUMMARISED: Final = "distilled"
"""The policy that reads summaries."""


def module_named(corpus: Corpus, part: str) -> Module:
    """Return the one module whose name contains ``part``.

    :raises NestorError: if there is not exactly one.
    """
    found = [module for module in corpus.modules if part in module.name]
    if len(found) != 1:
        raise NestorError(f"'{part}' is part of the names of {len(found)} modules; name one.")
    return found[0]


def variants(pool: LocalPool, program: str, folder: Path) -> dict[str, list[str]]:
    """Return cc1 options by the name of what is counted, stock first."""
    plugin = pool.plugin
    places = {name: stored_policy(name, [PROBLEM.name]).place for name in POLICIES}
    found = {"stock": [], "plugin idle": plugin.words()}
    found |= {name: plugin_flags(plugin, place) for name, place in places.items()}
    mode = LINK.modes[0]
    summary = folder / "program.txt"
    texts = PROBLEM.summaries(pool, [pool.corpus.program(program)], [mode])
    summary.write_text(texts[program, mode])
    words = plugin_flags(plugin, places[SUMMARISED], summary=summary)
    return found | {f"{SUMMARISED}, with a summary": words}


def counted(
    plugin: Plugin, corpus: Corpus, module: Module, options: Mapping[str, Sequence[str]]
) -> dict[str, tuple[float, bool]]:
    """Return the instructions of a compile by its name, and whether its object is stock's."""
    found: dict[str, tuple[float, bool]] = {}
    digests = []
    with tempfile.TemporaryDirectory(prefix="nestor-instructions-") as text:
        folder = Path(text)
        for name, words in options.items():
            out = folder / "out.o"
            command = compile_command(
                plugin.toolchain, module.options, corpus.bitcode(module), out, words
            )
            instructions = cost(command, folder, instructions=True)
            digests.append(sha256_of(out))
            found[name] = instructions, digests[-1] == digests[0]
            first = next(iter(found.values()))[0]
            print(f"{name}: {instructions:.0f}, {instructions / first:.4f} of stock", flush=True)
    return found


def of_an_empty_file(
    plugin: Plugin, options: Mapping[str, Sequence[str]], compiles: int
) -> dict[str, float]:
    """Return the milliseconds that each of ``options`` adds to the compile of an empty file."""
    seconds: dict[str, list[float]] = {name: [] for name in options}
    with tempfile.TemporaryDirectory(prefix="nestor-empty-") as text:
        source = Path(text) / "empty.c"
        source.touch()
        out = str(Path(text) / "out.o")
        base = [str(plugin.toolchain.clang), "-cc1", "-Oz", "-emit-obj", str(source), "-o", out]
        for _ in range(compiles):
            for name, words in options.items():
                before = children_cpu_seconds()
                subprocess.run([*base, *words], env=environment(), check=True)
                seconds[name].append(children_cpu_seconds() - before)
    medians = {name: 1000 * statistics.median(values) for name, values in seconds.items()}
    return {name: median - medians["stock"] for name, median in medians.items()}


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("module")
    parser.add_argument("--program", default="ninja/ninja", help="of which the summary is made")
    parser.add_argument("--compiles", type=int, default=41, help="of the empty file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()
    corpus = store.load(arguments.corpus)
    module = module_named(corpus, arguments.module)
    with local_pool(corpus) as pool, tempfile.TemporaryDirectory(prefix="nestor-") as text:
        options = variants(pool, arguments.program, Path(text))
        found = counted(pool.plugin, corpus, module, options)
        added = of_an_empty_file(pool.plugin, options, arguments.compiles)
    stock, _ = found["stock"]
    rows = [
        [name, 100 * (count / stock - 1), "yes" if same else "no", added[name]]
        for name, (count, same) in found.items()
        if name != "stock"
    ]
    for name, change, same, milliseconds in rows:
        print(f"{name:28} {change:+.2f} %  object as stock's: {same}  {milliseconds:+.2f} ms empty")
    if arguments.json:
        columns = [
            ("compile", "{}"), ("instructions over stock", "{:+.2f} %"),
            ("object as stock's", "{}"), ("added to an empty file", "{:+.2f} ms"),
        ]  # fmt: skip
        about = f"Instructions of one compile ({module.name}), counted by callgrind, over stock's."
        tables = {"instructions": record.table(columns, rows)}
        record.write(arguments.json, about, tables, describe(pool.plugin.toolchain))


if __name__ == "__main__":
    main()
