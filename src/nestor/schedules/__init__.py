"""Schedules: lowering pipelines written in MLIR's transform dialect, checked, applied and tuned.

``language`` reads and links schedules, ``payload`` reads what they lower, ``kernel`` makes and runs
the result, ``tune`` finds good choices. The packaged schedules are in ``library``.
"""
