"""Measuring what blocks cost on the machine in front of us."""
