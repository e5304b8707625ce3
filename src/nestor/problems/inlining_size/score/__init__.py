"""Bytes: what a module's functions weigh in the linked programs, and which decision is credited."""
