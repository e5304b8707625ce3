"""What the tests of whole builds share."""

import os
import subprocess
from pathlib import Path

from nestor.corpus import store
from tests.corpus.conftest import SourceTree

MAIN = "int f(int); int main(void) { return f(3) - 6; }\n"
LIBRARY = "int f(int x) { return 2 * x; }\n"
LISTS = "cmake_minimum_required(VERSION 3.16)\nproject(demo C CXX)\n"


def stock(*words: str | Path, cwd: Path) -> None:
    """Run a command of a build that knows nothing of Nestor."""
    environment = {**os.environ, "CC": "gcc", "CXX": "g++"}
    subprocess.run(words, cwd=cwd, env=environment, check=True, capture_output=True, timeout=120)


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
