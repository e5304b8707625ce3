"""``nestor schedule …``: lower linalg payloads by schedules of the transform dialect."""
