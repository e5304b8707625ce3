"""Modules and programs to learn from: captured, fetched, stored, linked again."""
