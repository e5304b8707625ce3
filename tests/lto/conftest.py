"""A C++ program of three modules, small enough to be linked by LTO in no time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.conftest import make_corpus
from tests.inlining import PROBLEM

# What is called twice is kept as a function, though its two copies would be smaller; ``heavy`` has
# many callers in the other modules.
SOURCES = {
    "a": """
#include <vector>
int heavy(const std::vector<int> &v, int n);
struct Guard { int *p; explicit Guard(int *q) : p(q) { ++*p; } ~Guard(); };
static int blend(int a, int b) { return (((a * 7 + b) ^ (b >> 3)) + ((a << 5) | (b & 9))) * 3; }
int a(int *v, int n) { Guard g(v); std::vector<int> w(v, v + n); return blend(v[0], heavy(w, n)); }
int more_a(int *v, int n) { Guard g(v); return blend(n, v[1]) - n; }
""",
    "b": """
#include <stdexcept>
#include <vector>
struct Guard { int *p; explicit Guard(int *q) : p(q) { ++*p; } ~Guard(); };
int heavy(const std::vector<int> &v, int n) {
  if (v.size() > 100) throw std::length_error("long");
  int s = 0;
  for (int x : v) s += x ^ n;
  return s;
}
int b(int *v, int n) { Guard g(v); return heavy({v, v + 2}, n) + heavy({v, v + 3}, n + 1); }
""",
    "main": """
#include <cstdio>
#include <exception>
struct Guard { int *p; explicit Guard(int *q); ~Guard(); };
Guard::~Guard() { --*p; }
int a(int *, int); int b(int *, int); int more_a(int *, int);
int main(int n, char **) {
  int v[4] = {n, 2, 3, 4};
  try { std::printf("%d\\n", a(v, n) + b(v, n) + more_a(v, n)); }
  catch (const std::exception &e) { std::puts(e.what()); }
  return 0;
}
""",
}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The folder of the sources."""
    work = tmp_path / "src"
    work.mkdir()
    for name, text in SOURCES.items():
        (work / f"{name}.cpp").write_text(text)
    return work


@pytest.fixture
def corpus(sources: Path, tmp_path: Path, plugin: Plugin) -> Corpus:
    """The program, captured."""
    make = "program: a.o b.o main.o\n\t$(CXX) -o $@ $^\n%.o: %.cpp\n\t$(CXX) -O2 -c $<\n"
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (sources, make)})


@pytest.fixture
def pool(corpus: Corpus, plugin: Plugin) -> Iterator[LocalPool]:
    with LocalPool(PROBLEM, corpus, plugin, PoolSettings(jobs=1)) as made:
        yield made
