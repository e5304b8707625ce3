"""``nestor make``: a whole build under a policy that reads a summary of the program."""
