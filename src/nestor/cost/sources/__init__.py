"""Where blocks come from: objects and programs, corpora, BHive's lists, ComPile's bitcode.

Read ``extraction`` first, the one way into all of them; blocks are gathered in a ``collection``.
``objects`` reads ELF files, by their address map where there is one and by ``splitting`` elsewhere;
``corpus`` and ``compile_parquet`` compile bitcode (``compiling``, ``speed_object``); ``bhive``
reads lists; ``settings`` holds what the command line offers.
"""
