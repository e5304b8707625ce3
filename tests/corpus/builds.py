"""What the tests of whole builds share."""

import os
import subprocess
from pathlib import Path

from nestor.corpus import store
from tests.corpus.conftest import SourceTree

MAIN = "int f(int); int main(void) { return f(3) - 6; }\n"
LIBRARY = "int f(int x) { return 2 * x; }\n"
PRINTING_MAIN = (
    '#include <stdio.h>\nint f(int);\nint main(void) { printf("%d %s", f(3), __FILE__); }\n'
)
PARTLY_USED_LIBRARY = "int f(int x) { return x * 14; }\nint unused(int x) { return x / 3; }\n"
LISTS = "cmake_minimum_required(VERSION 3.16)\nproject(demo C CXX)\n"


def stock(*words: str | Path, cwd: Path) -> None:
    """Run a command of a build that knows nothing of Nestor."""
    environment = {**os.environ, "CC": "gcc", "CXX": "g++"}
    subprocess.run(words, cwd=cwd, env=environment, check=True, capture_output=True, timeout=120)


def with_unused_files(tree: SourceTree) -> None:
    """Write a program that prints "42 main.c", a library of which it uses half, a file unused."""
    tree.write("main.c", PRINTING_MAIN)
    tree.write("lib.c", PARTLY_USED_LIBRARY)
    tree.write("extra.c", "int extra(int x) { return x + 1; }\n")


def with_library(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib/lib.c", LIBRARY)
    tree.write("lib/CMakeLists.txt", "add_library(l STATIC lib.c)\n")
    tree.write(
        "CMakeLists.txt",
        f"{LISTS}add_subdirectory(lib)\nadd_executable(prog main.c)\n"
        "target_link_libraries(prog l)\n",
    )


def runs(tree: SourceTree, program: str, folder: Path) -> bool:
    """Tell whether a program, linked again from the corpus alone, succeeds."""
    corpus = store.load(tree.wrappers.corpus)
    made = tree.relink(corpus, corpus.program(program), folder)
    return subprocess.run([made], check=False).returncode == 0
