"""Learners: algorithms that improve a policy from compiles, for any problem and any rule.

Read in this order: ``learner`` (the contract), ``batch`` (what an update learns from), an algorithm
of :mod:`nestor.learn.algorithms` (a page each), ``training`` (the loop). Then, as needed:

* ``episodes`` plays compiles under a policy against a ``reference`` of the stock compiler, and
  ``credit`` turns what they came to into rewards;
* ``start`` and ``extent`` say where a learner begins and where a policy may leave the default;
* ``setup`` and ``learners`` make an algorithm ready by its name;
* ``accounting``, ``budget`` and ``checkpoint`` count, end and resume a run.

What families of algorithms share is in ``gradient``, ``blackbox`` and ``distil``.
"""
