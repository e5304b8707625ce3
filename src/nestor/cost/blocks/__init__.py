"""Tables of basic blocks: machine code with labels, counts and origins.

Read ``table`` first (the columns, and the data sets of the package). ``splits`` holds rows out
for judging, ``summary`` counts what a table holds.
"""
