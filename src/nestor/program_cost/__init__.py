"""What a whole run costs: executions × throughput of blocks + events × penalties of the machine.

``penalties`` measures what a mispredicted branch or a miss costs on this machine and keeps it as a
small file; ``chains`` joins blocks along edges that nearly every execution takes; ``quantities``
sums a run up; ``weights`` says how much of each is not hidden by other work, fitted to measured
runs with a prior; ``estimate`` and ``compare`` answer for one run and for two builds.
"""
