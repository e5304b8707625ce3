"""Run-time events of programs, by basic block: executions, mispredicted branches, cache misses.

``table`` is what is kept of a run: a row for each block, and the edges between blocks. What counts
is a *source*: ``simulated`` (our own tool of valgrind), ``callgrind`` (its files) or ``perf``
(samples of a real counter). All fill the same columns; ``executed`` cuts instructions into blocks.
"""
