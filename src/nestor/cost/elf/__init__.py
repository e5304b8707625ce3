"""Code in ELF files for x86-64, as the compiler described it.

``binary`` reads executable sections and the functions in them, ``block_map`` decodes the compiler's
basic-block address maps, and ``mapped`` joins the two: each function's blocks with their machine
code and how often the compiler expects them to run.
"""
