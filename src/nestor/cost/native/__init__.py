"""The native library of the cost models (``src/nestor/native/cost``), seen from Python.

``library`` builds it for this machine and loads it, ``host_compiler`` finds the compiler for that,
``layout`` checks that both languages mean the same records and numbers. What is exchanged is
declared where it belongs: in ``isa.template_layout``, ``core.simulator`` and ``model.session``.
"""
