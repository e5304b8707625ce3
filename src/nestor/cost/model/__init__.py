"""Our own cost model: a simulated core, and boosted trees that learn what it misses.

Read ``hybrid`` first (what a model is and how it predicts), then ``training`` (how one is
trained): ``features`` and ``session`` (what the trees see, computed on the native side), ``folds``
(what a row may learn from), ``trees`` and ``forest`` (grown by LightGBM, evaluated natively),
``levels`` (throughputs that labels crowd at), ``trained_forms``, ``other_machine`` and
``held_out_opcodes`` (opcodes that training lacks). ``model_file`` reads and writes the file,
``explain`` says how an answer comes about.
"""
