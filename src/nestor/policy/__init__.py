"""Policies: one file, evaluated alike in Python and in the compiler."""
