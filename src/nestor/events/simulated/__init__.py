"""Events of a run under our own tool of valgrind (``native/events``).

``tool`` builds it for the valgrind of this machine and keeps it, ``collect`` runs a program under
it, ``records`` reads what it wrote. Predictors and caches are simulated, so equal runs give equal
counts on every machine.
"""
