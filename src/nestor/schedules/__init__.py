"""Schedules: lowering pipelines written in MLIR's transform dialect, checked, applied and tuned.

``language`` reads and links schedules, ``payload`` reads what they lower, ``kernel`` makes and runs
the result, ``tune`` finds good choices. The packaged schedules are in ``library``.

    from nestor import schedules
    product = schedules.compile(Path("matmul.mlir"))
    c = product(a, b)
"""

# Type checkers take this name for true. The process that runs kernels imports this package before
# it has chosen how many threads numpy takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from nestor.schedules.compiling import compile as compile  # noqa: A004

__all__ = ["compile"]


def __getattr__(name: str) -> object:
    """Import what is public when it is first used."""
    if name == "compile":
        from nestor.schedules.compiling import compile  # noqa: A004

        return compile
    raise AttributeError(f"module 'nestor.schedules' has no attribute '{name}'")
