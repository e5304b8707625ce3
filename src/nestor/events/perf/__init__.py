"""Events of a run from samples of real counters, as ``perf script`` prints them.

``script`` reads the text, ``samples`` turns samples with branch records into executions: between
the target of one branch and the next branch every instruction ran once.
"""
