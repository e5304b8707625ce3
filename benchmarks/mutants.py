"""Do the tests notice when an update rule is changed? Mutants of the learners, caught or not.

    python benchmarks/mutants.py --json benchmarks/results/mutants.json

Each mutant changes one place in a function of the algorithms or of what they share: a comparison,
an arithmetic operator, a sign, a number, a condition, a minimum, a keyword argument. The tests of
that file (:data:`FILES`) then run in a process of their own, which sees the changed module; a
mutant is *caught* if one of them fails, or if they take too long. What is only plotted
(dictionaries of metrics), messages and ``set_up`` are left alone. Results are kept as they come
(``--kept``), so that a run that was stopped goes on. Nothing is compiled.
"""

import argparse
import ast
import copy
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "nestor" / "learn"
FILES: Final = {
    "algorithms/reinforce.py": (
        "test_updates",
        "-k",
        "reinforce or entropy or novelty or groups or nothing",
    ),
    "algorithms/ppo.py": ("test_updates", "-k", "ppo or entropy or novelty or groups or nothing"),
    "algorithms/dqn.py": (
        "test_updates",
        "-k",
        "dqn or target or remembers or epsilon or groups or nothing",
    ),
    "algorithms/cloning.py": ("test_updates", "-k", "cloning"),
    "algorithms/best_of.py": ("test_updates", "-k", "best_of"),
    "algorithms/ars.py": ("test_blackbox",),
    "algorithms/cma_es.py": ("test_blackbox",),
    "algorithms/es.py": ("test_blackbox",),
    "algorithms/distil.py": ("test_rounds", "test_distil"),
    "gradient/optimiser.py": ("test_gradient",),
    "gradient/descent.py": ("test_gradient", "test_updates"),
    "gradient/imitation.py": ("test_gradient",),
    "gradient/novelty.py": ("test_gradient",),
    "gradient/memory.py": ("test_gradient",),
    "blackbox/candidates.py": ("test_blackbox",),
    "batch.py": ("test_gradient", "test_credit"),
    "credit.py": ("test_credit",),
}
"""The files that are changed, with the tests that are to notice and how they are chosen."""
SKIPPED: Final = ("set_up", "__post_init__")
"""Functions that set a learner up or word an error."""

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
NAMES: Final = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min",
    "argsort": "argmax", "argmin": "argmax", "zeros": "ones", "zeros_like": "ones_like",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    change: str
    source: str
    """The whole changed file."""

    @property
    def key(self) -> str:
        """What the result is kept under."""
        return hashlib.sha256(f"{self.file}\n{self.source}".encode()).hexdigest()[:24]


def mutants_of(file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file of the package."""
    tree = ast.parse((PACKAGE / file).read_text())
    for place, node in enumerate(_nodes(tree)):
        for number, change in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            target = next(n for p, n in enumerate(_nodes(changed)) if p == place)
            _apply(changed, target, number)
            line: int = node.lineno  # type: ignore[attr-defined]  # expressions and statements
            yield Mutant(file, line, change, ast.unparse(ast.fix_missing_locations(changed)))


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of all functions that may be changed, in a fixed order."""
    found: list[ast.AST] = []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            if node.name in SKIPPED:
                return
            for statement in node.body:
                visit(statement, True)
            return
        metrics = isinstance(node, ast.Dict) and all(
            isinstance(key, ast.Constant) and isinstance(key.value, str)
            for key in node.keys
            if key is not None
        )
        if metrics or isinstance(node, ast.Raise | ast.Assert):
            return
        if inside:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return found


def _changes(node: ast.AST) -> list[str]:
    """Return what can be changed at a node, in words."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        other = COMPARISONS[type(node.ops[0])].__name__
        return [f"{type(node.ops[0]).__name__} to {other}"]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return [f"{type(node.op).__name__} to {OPERATORS[type(node.op)].__name__}"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        return [f"{type(node.op).__name__} removed"]
    if isinstance(node, ast.BoolOp):
        return ["and to or" if isinstance(node.op, ast.And) else "or to and"]
    if isinstance(node, ast.IfExp):
        return ["always the first", "always the second"]
    if isinstance(node, ast.If):
        return ["condition always true", "condition always false"]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [f"{node.value} to {node.value + 1}"]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return [f"{node.value} to {not node.value}"]
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return [f"{node.attr} to {NAMES[node.attr]}"]
    if isinstance(node, ast.Name) and node.id in NAMES:
        return [f"{node.id} to {NAMES[node.id]}"]
    if isinstance(node, ast.Call) and node.keywords:
        return [f"argument {k.arg} left out" for k in node.keywords if k.arg is not None]
    if isinstance(node, ast.Break):
        return ["break left out"]
    return []


def _apply(tree: ast.AST, node: ast.AST, number: int) -> None:
    """Change a node of ``tree`` in the way of this number of :func:`_changes`."""
    if isinstance(node, ast.Compare):
        node.ops = [COMPARISONS[type(node.ops[0])]()]
    elif isinstance(node, ast.BinOp):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If):
        node.test = ast.Constant(number == 0)
    elif isinstance(node, ast.Constant):
        value = node.value
        assert isinstance(value, bool | int | float)
        node.value = (not value) if isinstance(value, bool) else value + 1
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Call):
        named = [keyword for keyword in node.keywords if keyword.arg is not None]
        node.keywords = [keyword for keyword in node.keywords if keyword is not named[number]]
    elif isinstance(node, ast.UnaryOp | ast.IfExp | ast.Break):
        _replace(tree, node, number)


def _replace(tree: ast.AST, node: ast.AST, number: int) -> None:
    new: ast.AST
    if isinstance(node, ast.UnaryOp):
        new = node.operand
    elif isinstance(node, ast.IfExp):
        new = (node.body, node.orelse)[number]
    else:
        new = ast.Pass()
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is node for item in value):
                value[:] = [new if item is node else item for item in value]


def caught(mutant: Mutant, seconds: float) -> bool:
    """Run the tests on a mutant in a process of its own; True if one fails or time is up."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os._exit(_run(mutant))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run(mutant: Mutant | None) -> int:
    """Run the tests with the changed module in place of its own; 0 if all pass."""
    try:
        if mutant is not None:
            module = "nestor.learn." + mutant.file.removesuffix(".py").replace("/", ".")
            _load(module, mutant.source)
        words = FILES[mutant.file] if mutant is not None else sorted(set(chain(*FILES.values())))
        tests = [
            str(ROOT / "tests" / "learn" / f"{word}.py") if word.startswith("test_") else word
            for word in words
            if mutant is not None or word.startswith("test_")
        ]
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    except BaseException:
        return 1


def _load(changed: str, source: str) -> None:
    """Import the changed module first, then everything of the package that uses it."""
    package = [name for name in sys.modules if name.startswith("nestor.learn")]
    for name in package:
        del sys.modules[name]

    class Loader(importlib.abc.Loader):
        def exec_module(self, module: object) -> None:
            exec(compile(source, changed, "exec"), vars(module))

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, path: object, target: object = None) -> object:
            if name != changed:
                return None
            return importlib.machinery.ModuleSpec(name, Loader())

    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]


def main() -> None:
    """Run every mutant that has no result yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--kept", type=Path, default=Path("mutants.jsonl"), help="results so far")
    parser.add_argument("--part", default="0/1", help="run every N-th mutant: I/N")
    parser.add_argument("--seconds", type=float, default=90.0, help="limit of one mutant")
    parser.add_argument("files", nargs="*", help="files of nestor.learn (default: all)")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    import torch  # imported once: the processes of the mutants inherit it

    torch.set_num_threads(1)
    from nestor.learn import learners  # noqa: F401  (the same)

    if _run_apart() != 0:
        raise SystemExit("The tests fail without any mutant.")
    every = [mutant for file in options.files or FILES for mutant in mutants_of(file)]
    every.sort(key=lambda mutant: mutant.key)  # a run that is stopped leaves a fair sample
    lines = options.kept.read_text().splitlines() if options.kept.exists() else []
    results = {row["key"]: row for row in map(json.loads, lines)}
    index, parts = map(int, options.part.split("/"))
    for number, mutant in enumerate(every):
        if mutant.key in results or number % parts != index:
            continue
        row = {k: v for k, v in asdict(mutant).items() if k != "source"}
        row |= {"key": mutant.key, "caught": caught(mutant, options.seconds)}
        results[mutant.key] = row
        with options.kept.open("a") as file:
            file.write(json.dumps(row) + "\n")
    found = [results[mutant.key] for mutant in every if mutant.key in results]
    found.sort(key=lambda row: (row["file"], row["line"]))
    _report(found)
    if options.json is not None:
        survived = [{k: r[k] for k in ("file", "line", "change")} for r in found if not r["caught"]]
        table = {
            f: [sum(r["caught"] for r in found if r["file"] == f), n] for f, n in _counts(found)
        }
        totals = {"mutants": len(found), "caught": sum(r["caught"] for r in found)}
        text = {**totals, "files": table, "survived": survived}
        options.json.write_text(json.dumps(text, indent=1) + "\n")


def _run_apart() -> int:
    child = os.fork()
    if child == 0:
        os._exit(_run(None))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _counts(found: list[dict[str, object]]) -> list[tuple[str, int]]:
    return list(Counter(str(row["file"]) for row in found).items())


def _report(found: list[dict[str, object]]) -> None:
    for row in found:
        if not row["caught"]:
            print(f"survived  {row['file']}:{row['line']}  {row['change']}")
    print(f"{'file':28} {'mutants':>8} {'caught':>8} {'':>6}")
    for file, count in [*_counts(found), ("all", len(found))]:
        own = [row for row in found if file in ("all", row["file"])]
        good = sum(bool(row["caught"]) for row in own)
        print(f"{file:28} {count:8} {good:8} {100 * good / max(1, count):5.1f}%")


if __name__ == "__main__":
    main()
