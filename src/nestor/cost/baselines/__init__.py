"""Known cost models, trained on the same rows as ours: llvm-mca, a bound, and two networks."""
