"""How good a cost model is: ``evaluate`` judges one by measured blocks, with ``metrics``."""
