"""What docs/internals/architecture.md promises: sizes, no circles, and what is general."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "nestor"
SHORT = (SOURCES, ROOT / "tests", ROOT / "benchmarks", ROOT / "examples")
"""Where every file of code is short enough to be read in a sitting."""

GENERAL = (
    "build",
    "change.py",
    "compiler",
    "corpus",
    "environment",
    "errors.py",
    "evaluate",
    "files.py",
    "learn",
    "policy",
    "problem",
    "progress.py",
    "registration.py",
    "rollout",
    "temporary.py",
    "text_file.py",
    "tune",
    "workload",
    "native/policy",
    "native/plugin/core",
)
"""What must not know any particular problem."""

EXCEPT = {"compiler/options.py": "the names of clang's own options"}
"""What names such words for another reason."""

PARTICULAR = re.compile(r"inlin|callee|call_site|cost_estimate", re.IGNORECASE)

LINES = 350
FILES = 15
CODE = (".py", ".cpp", ".h", ".c")


def _files(place: str = ".") -> list[Path]:
    root = SOURCES / place
    found = [root] if root.is_file() else sorted(root.rglob("*"))
    return [path for path in found if path.suffix in CODE]


@pytest.mark.parametrize("place", GENERAL)
def test_general_code_knows_no_problem(place: str) -> None:
    assert (SOURCES / place).exists()
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in _files(place)
        if str(path.relative_to(SOURCES)) not in EXCEPT
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PARTICULAR.search(line)
    ]
    assert not found, "\n".join(found)


RIDDLES = {"known", "told", "made", "paid", "asked", "given", "barren", "rough"}
"""Participles that say nothing as names: known to whom, made of what?"""


def test_names_say_what_they_name() -> None:
    found = {
        f"{path.relative_to(SOURCES)}: {name}"
        for path in _files()
        if path.suffix == ".py"
        for name in _names(ast.parse(path.read_text()))
        if name.strip("_").lower() in RIDDLES
    }
    assert not found, "\n".join(sorted(found))


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module defines or assigns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_files_can_be_read_in_a_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in SHORT
        for path in sorted(folder.rglob("*"))
        if path.suffix in CODE and (lines := len(path.read_text().splitlines())) > LINES
    }
    assert not long, long


def test_temporary_folders_go_with_their_process() -> None:
    makes = re.compile(r"\b(TemporaryDirectory|mkdtemp|NamedTemporaryFile|mkstemp)\(")
    found = [path for path in _files() if path.suffix == ".py" and makes.search(path.read_text())]
    assert found == [SOURCES / "temporary.py"]


def test_folders_can_be_looked_over() -> None:
    crowded = {}
    for folder in (SOURCES, *(p for p in SOURCES.rglob("*") if p.is_dir())):
        units = {p.stem for p in folder.iterdir() if p.suffix in CODE and p.stem != "__init__"}
        if len(units) > FILES:
            crowded[str(folder.relative_to(SOURCES))] = len(units)
    assert not crowded, crowded


def test_modules_do_not_import_in_circles() -> None:
    graph = {_name(path): _imports(path) for path in _files() if path.suffix == ".py"}
    graph = {name: {i for i in imports if i in graph} for name, imports in graph.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " → ".join((*above[above.index(name) :], name))
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> set[str]:
    """Return what a module imports when it is imported itself, not later or for types alone."""
    found: set[str] = set()

    def walk(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
                walk(node.body + node.orelse)
            elif isinstance(node, ast.Try | ast.ClassDef):
                walk(node.body)

    walk(ast.parse(path.read_text()).body)
    own = _name(path)
    # A package's face is imported with each of its modules: that is no circle of its own.
    return {name for name in found if name != own and not own.startswith(f"{name}.")}


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config) -> None:
    patterns = pytestconfig.getini("norecursedirs")
    tests = Path(__file__).parent
    folders = {
        part for path in tests.rglob("test_*.py") for part in path.relative_to(tests).parts[:-1]
    }
    assert "build" in folders
    left_out = {name for name in folders for pattern in patterns if fnmatch(name, pattern)}
    assert not left_out
