"""Misses of caches and of the TLB from a profile and code alone, without a run of any cache.

``addresses`` reads off where an access of a loop goes from turn to turn, ``footprints`` sums up the
bytes that loops, functions and the run touch, ``features`` puts both into a row for each block, and
``model`` predicts how often the block misses a cache of a given size.
"""
