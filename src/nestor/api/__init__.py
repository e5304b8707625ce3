"""What ``import nestor`` offers (docs/reference/python-api.md); the names are listed in ``nestor``.

A thin layer: it finds things by the names that users type, fills in the usual choices, and calls
the packages below. The command line is a second such layer.
"""
