"""Payloads: functions of linalg operations on tensors; reading, sizes, and numpy's results."""
