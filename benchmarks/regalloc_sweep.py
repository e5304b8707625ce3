"""What the checks of the register allocator's part of the plugin share: modules, work, records."""

import argparse
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits, Outcome, run
from nestor.corpus.model import Corpus, Module

DEFAULTS: Final = ("-nestor-eviction=default", "-nestor-priority=default")
"""Both decisions through the plugin, answered as stock does."""

LIMITS: Final = Limits(seconds=600.0)
"""Of one compile."""

_ATTRIBUTES: Final = {"-Os": "optsize", "-Oz": "minsize"}
_VECTORISERS: Final = ("-vectorize-loops", "-vectorize-slp")


@dataclass(frozen=True)
class Journal:
    """Results of finished work, a JSON line each: a sweep that was stopped goes on from them.

    ``context`` names what the results depend on; lines of another context are passed over.
    """

    path: Path
    context: str

    def read(self) -> dict[str, Any]:
        """Return the results by their keys."""
        lines = record.json_lines(self.path, may_lack=True)
        return {line["key"]: line["value"] for line in lines if line["context"] == self.context}

    def add(self, key: str, value: Any) -> None:
        """Append a result."""
        line = json.dumps({"context": self.context, "key": key, "value": value})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(f"{line}\n")


def sweep(
    journal: Journal,
    keys: Iterable[str],
    work: Callable[[str], Any],
    jobs: int,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Return the result of ``work`` for each key, of earlier sweeps where the journal has it.

    :param jobs: threads that work at a time.
    """
    keys = list(keys)
    done = journal.read()
    lock = threading.Lock()
    todo = [key for key in keys if key not in done]

    def one(key: str) -> None:
        value = work(key)
        with lock:
            done[key] = value
            journal.add(key, value)
            left = sum(k not in done for k in todo)
            if left % 20 == 0:
                report(f"{len(keys) - left} of {len(keys)}")

    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(one, todo):
            pass
    return {key: done[key] for key in keys}


def sample(modules: Sequence[Module], count: int) -> list[Module]:
    """Return ``count`` modules in an order that depends on their names only, C and C++ mixed.

    A larger sample begins with the smaller one.
    """
    return sorted(modules, key=lambda m: hashlib.sha256(m.name.encode()).digest())[:count]


@dataclass(frozen=True)
class Optimised:
    """A module as code generation gets it, and the words that compile it from there."""

    clang: Path
    bitcode: Path
    options: tuple[str, ...]

    def compile(self, out: Path, words: Sequence[str] = (), limits: Limits = LIMITS) -> Outcome:
        """Generate code into the object ``out``."""
        command = [self.clang, *self.options, *words, "-x", "ir", self.bitcode, "-o", out]
        return run(list(map(str, command)), limits)


def optimise(corpus: Corpus, module: Module, clang: Path, level: str, folder: Path) -> Optimised:
    """Optimise ``module`` at ``level`` once, so that its code can be generated many times.

    :raises RuntimeError: if the compiler fails.
    """
    options = [level if word.startswith("-O") else word for word in module.options]
    if level == "-O1":
        options = [word for word in options if word not in _VECTORISERS]
    # Functions of bitcode obey their attributes, not the command line.
    force = _ATTRIBUTES.get(level)
    attribute = ["-mllvm", f"-force-attribute={force}"] if force else []
    bitcode = folder / "optimised.bc"
    middle = ["-emit-llvm-bc" if word == "-emit-obj" else word for word in options]
    done = run(
        [clang, *middle, *attribute, "-x", "ir", corpus.bitcode(module), "-o", bitcode], LIMITS
    )
    if not done.ok:
        raise RuntimeError(f"{module.name} at {level}: {done.reason}")
    return Optimised(clang, bitcode, (*options, "-disable-llvm-passes"))


def unequal(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what failed, with the reason, and what is not the same, with the ways."""
    return {
        key: value.get("failure", value.get("same"))
        for key, value in results.items()
        if "failure" in value or not all(value["same"].values())
    }


def arguments(title: str, sampled: str) -> argparse.ArgumentParser:
    """Return the options that the sweeps share.

    :param sampled: what ``--sample`` counts.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--work", type=Path, required=True, help="folder of the records")
    parser.add_argument("--sample", type=int, default=1 << 30, help=sampled)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    return parser


def say(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def conclude(
    name: str,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    exceptions: Mapping[str, Any],
    plugin: Plugin,
    out: Path | None,
) -> None:
    """Print a table and what is not as it should be, and record both in ``out``.

    :param columns: titles and formats.
    :param exceptions: by what they are about.
    """
    print(" | ".join(title for title, _ in columns))
    for row in rows:
        cells = (form.format(cell) for (_, form), cell in zip(columns, row, strict=True))
        print(" | ".join(cells))
    for key, reason in exceptions.items():
        print(f"{key}: {reason}")
    if out:
        record.write(
            out,
            "What the plugin does to register allocation.",
            {name: record.table(columns, rows)},
            machine.describe(plugin.toolchain),
            **{f"{name}_exceptions": exceptions},
        )
