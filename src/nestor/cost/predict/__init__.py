"""What the code that users have costs.

``answers`` says which blocks have no answer and why; ``functions`` sums the cycles of a function's
blocks. What users name is read by ``nestor.cost.sources.inputs``.
"""
