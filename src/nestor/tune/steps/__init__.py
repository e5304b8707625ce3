"""One step of a search: which moves to try, what each did, and which of them to keep."""
