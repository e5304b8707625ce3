"""Where blocks come from: objects and programs, corpora, BHive's lists, ComPile's bitcode."""
