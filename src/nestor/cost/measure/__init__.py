"""Measure the cycles that blocks take on this machine.

Read ``backend`` first (the contract), then ``rdtsc_backend``, which runs blocks in our own sandbox
(``harness``, built from ``src/nestor/native/throughput``) and needs no counters;
``exegesis_backend`` uses llvm-exegesis where there are. ``screen`` refuses blocks before they run,
``label`` turns passes into a label, ``session`` measures a table in batches into the file of
``rows``, ``self_test`` says how well labels repeat.
"""
