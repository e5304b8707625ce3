"""How our own cost model (:mod:`nestor.cost.model`) is trained.

Read ``train`` first: ``rows`` (a fitted core, and what the trees see of each row), ``folds`` (what
a row may learn from), ``trees`` (grown by LightGBM), ``fine`` (trees that tell the blocks of one
level apart), ``other_machine`` and ``held_out_opcodes`` (opcodes that training lacks).
"""
