"""Rollouts: compiles under a policy, many at once, and what they left behind."""
