"""Schedules as text: named sequences, decisions, libraries, and what links them."""
