"""The graph of a run's blocks: ``flow`` inside functions, ``loops`` and how often they turn."""
