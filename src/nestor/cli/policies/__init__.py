"""Commands that make, judge and search policies."""
