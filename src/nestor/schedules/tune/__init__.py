"""Find good choices: searches, a database of results, and policies learned from it."""
