"""Search over the decisions of one program."""
