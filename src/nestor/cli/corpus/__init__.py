"""``nestor corpus``: one command per file."""
