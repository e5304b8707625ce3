"""Commands that find and undo the bad decision of a policy."""
