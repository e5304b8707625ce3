"""Mispredicted branches from a profile and code alone, without a run of any predictor.

``conditions`` reads off what a branch compares and where that comes from, ``features`` puts what a
compiler knows of each branch into a row, and ``model`` predicts how often it is mispredicted.
"""
