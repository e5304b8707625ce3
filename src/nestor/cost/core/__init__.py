"""A simulated out-of-order core: what the machine does with a block that runs over and over.

Read ``parameters`` first: what describes a core, and each instruction form on it. ``simulator``
runs blocks on it (the work is done by ``src/nestor/native/cost``), and ``fitting`` finds the
parameters that explain measured cycles.
"""
