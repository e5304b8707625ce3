"""
Released policies against their files: objects, answers to random rows, and what loading costs.

    python -m benchmarks.release_forms objects CORPUS [--policy NAME] [--json FILE]
    python -m benchmarks.release_forms models [--policy NAME ...] [--json FILE]
    python -m benchmarks.release_forms cost CORPUS [--policy NAME ...] [--module NAME]
        [--rounds N] [--json FILE]

``objects`` compiles every module of a corpus with the plugin that carries the policy and with the
plugin that reads it from a file. ``models`` asks the headers (two compilers, with products and sums
fused and without), the MLIR and the TFLite model about 1,000 random rows; the last needs the
package ai-edge-litert. ``cost`` is the processor time of compiling an empty file and a module, in
interleaved rounds: what the empty file takes over stock is the plugin and its policy being loaded.
"""

import argparse
import ctypes
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.compile_cpu import cost
from benchmarks.machine import describe
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.policy.names import NamedPolicy
from nestor.policy.trees import TreesPolicy
from nestor.problem.registry import find_policy
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.release.forms import release_in_tree
from nestor.release.in_tree import in_tree_policy
from nestor.release.mlir import module
from nestor.release.plugin import build_plugin
from nestor.release.tflite.export import model

ROWS = 1000
ABOUT = "Released policies against their files."
DRIVER = Path(__file__).parent.parent / "tests/release/Vectors.cpp"
COMPILERS = {"g++": "g++", "clang++": None}
FLAGS = {"plain": ["-O2"], "fused": ["-O3", "-march=haswell", "-ffp-contract=fast"]}


def policy_named(name: str) -> NamedPolicy:
    """Return a built-in policy about inlining, or that of a file."""
    return find_policy(name, ["inlining-size"])[1]


def rows_of(policy: NamedPolicy) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return random rows: small numbers and large ones of both signs, int64 [ROWS, features]."""
    rng = np.random.default_rng(7)
    shape = (ROWS, len(policy.features()))
    large = np.exp(rng.random(shape) * 14) * np.where(rng.random(shape) < 0.25, -1, 1)
    return np.where(rng.random(shape) < 0.6, rng.integers(-5, 60, shape), large).astype(np.int64)


def compiled(
    toolchain: Toolchain, corpus: Corpus, unit: Module, flags: Sequence[str], out: Path
) -> bytes:
    """Return the object of a module."""
    bitcode = corpus.bitcode(unit)
    subprocess.run(compile_command(toolchain, unit.options, bitcode, out, flags), check=True)
    return out.read_bytes()


def ways(policy: NamedPolicy, folder: Path, toolchain: Toolchain) -> dict[str, list[str]]:
    """Return the options of compiles with the policy's file and with a plugin that carries it."""
    plugin = ensure_plugin(toolchain)
    file, carrier = folder / "policy.safetensors", folder / "carrier.plugin"
    file.write_bytes(policy.data)
    carrier.write_bytes(build_plugin(toolchain, [policy]))
    return {"file": plugin_flags(plugin, file), "carried": [f"-fpass-plugin={carrier}"]}


def objects(corpus: Corpus, names: Sequence[str], folder: Path) -> list[list[Any]]:
    """Return a row for each policy: modules, equal objects, objects that differ from stock's."""
    toolchain = find()
    rows: list[list[Any]] = []
    for name in names:
        flags = ways(policy_named(name), folder, toolchain)
        equal = changed = 0
        for unit in corpus.modules:
            out = folder / "module.o"
            found = [compiled(toolchain, corpus, unit, each, out) for each in flags.values()]
            equal += found[0] == found[1]
            changed += compiled(toolchain, corpus, unit, [], out) != found[0]
        rows.append([name, len(corpus.modules), equal, changed])
        print(*rows[-1], flush=True)
    return rows


def models(names: Sequence[str], folder: Path) -> list[list[Any]]:
    """Return a row for each policy and form: rows, equal decisions, largest error of the logit."""
    toolchain, found = find(), []
    for name in names:
        policy = policy_named(name)
        x = rows_of(policy)
        assert policy.policy is not None
        logits = policy.policy.logits(x)
        place = folder / name.replace(":", "-")
        release_in_tree(policy, "llvm-header", place, toolchain)
        for compiler in COMPILERS:
            for title, flags in FLAGS.items():
                answers = asked(place, COMPILERS[compiler] or str(toolchain.clangxx), flags, policy)
                for column, form in ((0, "llvm-header"), (2, "EmitC header")):
                    how = f"{compiler}, {title}"
                    own = answers[:, column], answers[:, column + 1]
                    found.append([name, form, how, *compared(*own, logits)])
        found.append([name, "mlir", "mlir-opt", *compared(None, lowered(place, policy), logits)])
        if not isinstance(policy.policy, TreesPolicy):
            found.append([name, "tflite", "LiteRT", *compared(*interpreted(policy), logits)])
    for each in found:
        print(*each, flush=True)
    return found


def compared(own: Any, decisions: Any, logits: Any) -> list[Any]:
    """Return rows, equal decisions, equal logits and the largest error in millionths."""
    equal = int((decisions == (logits > 0)).sum())
    if own is None:
        return [len(logits), equal, None, None]
    return [len(logits), equal, int((own == logits).sum()), 1e6 * float(np.abs(own - logits).max())]


def asked(place: Path, compiler: str, flags: Sequence[str], policy: NamedPolicy) -> Any:
    """Compile the driver over the headers and return its answers, f64 [ROWS, 4]."""
    program, given, result = place / "vectors", place / "rows", place / "results"
    words = [compiler, "-std=c++17", *flags, "-I", str(place), str(DRIVER), "-o", str(program)]
    subprocess.run(words, check=True)
    given.write_bytes(rows_of(policy).tobytes())
    subprocess.run([str(program), str(given), str(result), *policy.features()], check=True)
    return np.fromfile(result).reshape(ROWS, 4)


def lowered(place: Path, policy: NamedPolicy) -> Any:
    """Lower the MLIR to machine code and return its decisions [ROWS]."""
    toolchain = find()
    text, dialect, ir, library = (place / f"model.{s}" for s in ("mlir", "llvm.mlir", "ll", "so"))
    text.write_text(module(in_tree_policy(policy, "mlir", toolchain)))
    tools = toolchain.prefix / "bin"
    passes = ["--convert-arith-to-llvm", "--convert-func-to-llvm", "--reconcile-unrealized-casts"]
    subprocess.run([tools / "mlir-opt", *passes, text, "-o", dialect], check=True)
    subprocess.run([tools / "mlir-translate", "--mlir-to-llvmir", dialect, "-o", ir], check=True)
    # One straight function of many thousand operations: -O0 keeps the compile short.
    words = ["-O0", "-Wno-override-module", "-fPIC", "-shared"]
    subprocess.run([toolchain.clang, *words, ir, "-o", library], check=True)
    ask = ctypes.CDLL(str(library)).Model
    ask.argtypes, ask.restype = [ctypes.c_int64] * len(policy.features()), ctypes.c_int64
    return np.array([ask(*map(int, row)) for row in rows_of(policy)])


def interpreted(policy: NamedPolicy) -> tuple[Any, Any]:
    """Return LiteRT's logits and decisions [ROWS]."""
    from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-not-found,unused-ignore]

    network = in_tree_policy(policy, "tflite", find())
    assert not isinstance(network, TreesPolicy)
    interpreter = Interpreter(model_content=model(network))
    interpreter.allocate_tensors()
    decision, outputs = (each["index"] for each in interpreter.get_output_details())
    logits, decisions = [], []
    for row in rows_of(policy):
        for index, value in enumerate(row):
            interpreter.set_tensor(index, np.array([value]))
        interpreter.invoke()
        values = interpreter.get_tensor(outputs)[0]
        logits.append(values[0] if len(values) == 1 else values[1] - values[0])
        decisions.append(interpreter.get_tensor(decision)[0])
    return np.array(logits), np.array(decisions)


def costs(
    corpus: Corpus, named: str | None, names: Sequence[str], rounds: int, folder: Path
) -> list[list[Any]]:
    """Return a row for each policy and way: milliseconds for nothing and for a module.

    :param named: the module; None is the one of median size.
    :return: of each the least and the median of the rounds.
    """
    toolchain = find()
    by_size = sorted(corpus.modules, key=lambda unit: corpus.bitcode(unit).stat().st_size)
    unit = by_size[len(by_size) // 2] if named is None else corpus.module(named)
    empty, out = folder / "empty.c", folder / "module.o"
    empty.write_text("")
    flags: dict[tuple[str, str], list[str]] = {("stock", ""): []}
    for name in names:
        own = folder / name.replace(":", "-")
        own.mkdir()
        for way, words in ways(policy_named(name), own, toolchain).items():
            flags[name, way] = words
    times: dict[tuple[str, str], list[list[float]]] = {key: [[], []] for key in flags}
    for _ in range(rounds):
        for key, words in flags.items():
            nothing = [str(toolchain.clang), "-cc1", "-Oz", "-emit-obj", *words, str(empty)]
            commands = [
                [*nothing, "-o", str(out)],
                compile_command(toolchain, unit.options, corpus.bitcode(unit), out, words),
            ]
            for found, command in zip(times[key], commands, strict=True):
                found.append(1000 * cost(command, folder, instructions=False))
    rows: list[list[Any]] = []
    for (name, way), (nothing_times, module_times) in times.items():
        both = (nothing_times, module_times)
        rows.append([name, way, *(f(each) for each in both for f in (min, statistics.median))])
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    """Read the command line, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["objects", "models", "cost"])
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--policy", nargs="+", default=["shipped"])
    parser.add_argument("--module")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if options.part == "models":
            counts = [("rows", "{}"), ("decisions equal", "{}"), ("logits equal", "{}")]
            titles = [("policy", "{}"), ("form", "{}"), ("by", "{}"), *counts]
            columns = [*titles, ("largest error, millionths", "{:.1f}")]
            rows = models(options.policy, folder)
        elif options.part == "objects":
            columns = [("policy", "{}"), ("modules", "{}"), ("equal", "{}"), ("not stock's", "{}")]
            rows = objects(store.load(options.corpus), options.policy, folder)
        else:
            columns = [("policy", "{}"), ("from", "{}"), ("empty file, least ms", "{:.2f}")]
            columns += [("median", "{:.2f}"), ("module, least ms", "{:.2f}"), ("median", "{:.2f}")]
            corpus = store.load(options.corpus)
            rows = costs(corpus, options.module, options.policy, options.rounds, folder)
    if options.json:
        tables = {options.part: record.table(columns, rows)}
        record.write(options.json, ABOUT, tables, describe(find()))


if __name__ == "__main__":
    main()
