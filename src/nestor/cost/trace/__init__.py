"""Traces of basic blocks, and what they cost with other code in the blocks.

The formats and the meaning of the files are those of ``basic_block_trace_model`` in Google's
``ml-compiler-opt`` (``compiler_opt/memtrace_costmodel``), whose trainers for register allocation
take its output as their reward. ``riegeli`` is the container, ``highwayhash`` its checksum,
``messages`` what it holds, ``entries`` the code that a trace refers to, ``replay`` the cost, and
``record`` makes a trace of a real run.
"""
