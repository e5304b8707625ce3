"""Comparing a policy with stock on linked programs."""
