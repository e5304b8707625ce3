"""Published and analytical cost models, trained on the same rows as ours.

``mca`` (llvm-mca) and ``bound`` (ports, chain and front end) are ``rescaled`` to measurements;
``lstm`` and ``granite`` are networks over a ``vocabulary`` of instructions, with ``network``
(files, prediction) and ``training`` in common.
"""
