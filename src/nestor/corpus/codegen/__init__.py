"""Corpora for problems that decide in code generation: modules as the middle end leaves them."""
