"""Blocks of single instructions, one or more for every one that the decoder knows.

What training lacks can so be measured: ``examples`` makes an instruction of each of iced-x86's
encodings, ``patterns`` makes blocks of it: alone, several that do not wait for each other, and a
chain.
"""
