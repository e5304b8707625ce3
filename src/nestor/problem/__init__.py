"""The contract of every decision problem: what it describes, what a compile takes and gives.

Read in this order: ``trajectory`` (questions and answers of one compile), ``rollout`` (one compile
as a request and its result), ``problem`` (what a problem must say), ``registry`` (finding one by
name), ``check`` (a test of what learners rely on). The implementations are in
:mod:`nestor.problems`, a folder each, and in anybody's own folder.
"""
