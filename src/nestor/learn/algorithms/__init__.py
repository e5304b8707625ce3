"""The algorithms, a page each: read any of them from top to bottom.

A page has the settings, the state that is kept in a checkpoint, the learner
(:class:`nestor.learn.learner.Learner`) with its update in full, and ``set_up``. Begin with
``reinforce``, which is the shortest; ``ppo`` and ``dqn`` also learn by gradient, ``ars``,
``cma_es`` and ``es`` compare whole policies, ``cloning`` and ``best_of`` imitate, ``distil`` fits a
model to what searches found.
"""
