"""Summaries of a program: what its objects say of functions that one module cannot see."""
