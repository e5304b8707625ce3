"""What the problems about register allocation share: everything but their questions.

The plugin decides inside of the compiler (``native/plugin/regalloc``). Read in this order:
``allocation_log`` (what a function will execute, as the plugin says it), ``weights`` and
``outcome`` (what a module costs), ``plugin_flags`` and ``compile`` (one rollout), ``credit``,
``overrides``, ``search`` (trials inside of the compiler), ``problem`` (all of it together).
"""
