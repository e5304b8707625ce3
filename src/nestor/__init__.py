"""Nestor: learned advisors for LLVM, on the compiler you already have."""

__version__ = "0.1.0"
