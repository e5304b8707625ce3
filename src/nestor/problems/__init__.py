"""The decision problems of Nestor, a folder each, found by :mod:`nestor.problem.registry`."""
