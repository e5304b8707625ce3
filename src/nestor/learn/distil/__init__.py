"""What distillation is made of; :mod:`nestor.learn.algorithms.distil` puts it together.

``trials`` are rows of what searches tried, ``searches`` make them, ``gain_model`` fits a policy to
them with models of ``gain_trees`` or ``gain_network``, and ``validation`` builds programs under it.
"""
