"""The bench tier: projects of many styles, with whole styles held out.

Held out for tests are projects whose style training has (modern libraries, metadata in classes,
parsers and interpreters in C) and all projects of styles that training lacks: expression
templates, solvers, and old dictionary and compressor programs in C++. No held-out project may
share code with training: ``nestor corpus overlap`` checks it.
"""

from nestor.corpus.bench_c import C
from nestor.corpus.bench_cxx import CXX
from nestor.corpus.recipe import Recipe

BENCH: tuple[Recipe, ...] = (*CXX, *C)
