"""A policy in a form that another build takes: a plugin of its own, or a model of LLVM itself."""
