"""What a search over inlining may change: overrides, sites and moves."""
