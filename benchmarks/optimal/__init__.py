"""Exact optima of small components of call graphs, and searches and policies beside them.

    python -m benchmarks.optimal linked CORPUS
    python -m benchmarks.optimal enumerate CORPUS WORK [--sites 9] [--programs NAME…]
    python -m benchmarks.optimal judge CORPUS WORK [--compiles 25 100] [--mode gc]
    python -m benchmarks.optimal report WORK… [--json FILE]
    python -m benchmarks.optimal remainder CORPUS WORK --programs NAME… [--json FILE]

``linked`` leaves out of the programs of CORPUS what the linker does not take of libraries,
``enumerate`` finds the components and measures every answer to their call sites, ``judge`` builds
the programs under stock, policies and ``nestor tune``, and ``report`` compares. ``remainder``
searches whole programs to the end and measures what single flips and pairs still save. WORK keeps
what was measured, a file for each program, so a run that was stopped goes on. The level (-Oz, -Os)
is the one at which the corpus was captured.
"""
