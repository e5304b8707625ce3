"""A page to look at: what policies decide in a program, and what each decision cost or saved.

One HTML file with all data in it: no server, no network.
"""
