"""LLVM's own tools for machine code, run as processes and read.

``machine_code`` (llvm-mc: assembly to bytes and back) is the one to read first; ``mca`` (llvm-mca,
a static analyser) serves a baseline, ``exegesis`` (llvm-exegesis, a benchmark that needs cycle
counters) serves a back end of ``nestor blocks measure``. Every process is started by
``nestor.compiler.process``.
"""
