"""Our own cost model: a simulated core, and boosted trees that learn what it misses.

Read ``hybrid`` first (what a model is and how it predicts): ``features`` and ``session`` (what the
trees see, computed on the native side), ``forest`` (trees, evaluated natively), ``levels``
(throughputs that labels crowd at), ``trained_forms`` and ``opcode_intervals`` (opcodes that
training lacks). ``model_file`` reads and writes the file, ``explain`` says how an answer comes
about. How one is trained: :mod:`nestor.cost.training`.
"""
