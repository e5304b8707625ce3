"""The size of functions, predicted from their IR before code generation (IR2Native).

Read ``model`` first, then ``examples`` (what it is fitted to) and ``estimating_pool`` (rollouts
that need no code).
"""
