"""Nestor: learned advisors for LLVM, on the compiler you already have."""

import sys

__version__ = "0.1.0"

# Gymnasium finds no environments by itself. Who uses it has imported it before us; who does not,
# must not wait for it.
if "gymnasium" in sys.modules:
    import importlib

    importlib.import_module("nestor.registration")
