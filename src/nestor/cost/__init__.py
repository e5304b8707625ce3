"""Cost models of basic blocks: from machine code to cycles.

Read ``contract`` first: what every model answers. Then the way of a block::

    sources → blocks → measure → model → judge, predict

``sources`` take blocks out of real code, ``blocks`` keeps them in tables, ``measure`` labels them
with the cycles of this machine, ``model`` is our own model (over ``core``, a simulated processor,
and ``isa``, the meaning of instructions) beside the ``baselines``, ``judge`` says how good one is
and ``predict`` uses it on functions. ``elf`` reads the code and the block maps of objects,
``trace`` prices the blocks of a real run. ``registry`` opens and saves a model of any kind,
``trainers`` trains one; ``settings`` are their names and options. ``native`` and ``llvm_tools`` are
the doors to our C++ library and to LLVM's programs; ``data`` holds the shipped tables and model.
"""
