"""Code that projects have in common: held-out code that training has seen, too."""
