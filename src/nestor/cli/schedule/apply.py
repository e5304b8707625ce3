"""``nestor schedule apply``: a payload after a schedule."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import print_json
from nestor.cli.options import OutputFile
from nestor.cli.remarks import remark
from nestor.cli.schedule.common import open_payload, written


@dataclass(frozen=True)
class Apply:
    """Lower a payload by a schedule, and print the module that comes out.

    A payload is a .mlir file with one public function of linalg operations on tensors of fixed
    sizes. Decisions that are not answered are guessed from the sizes of the payload, the caches
    and the registers. What cannot be lowered is explained with its place.

    Examples:
        nestor schedule apply matmul.mlir
        nestor schedule apply matmul.mlir --print-after matmul_block bufferize
        nestor schedule apply matmul.mlir --target neon --object matmul.o
        nestor schedule apply mine.mlir --schedule tuned --library tuned.mlir --out lowered.mlir
    """

    payload: tyro.conf.Positional[Path]
    """The payload."""
    schedule: str | None = None
    """The schedule (default: the packaged one for such a payload)."""
    library: tuple[Path, ...] = ()
    """Files or folders with schedules of your own."""
    choice: tuple[str, ...] = ()
    """Answers to decisions, such as tile_m=64."""
    print_after: tuple[str, ...] = ()
    """Steps after which to print the module as it is then."""
    resolved: OutputFile | None = None
    """Where to write the schedule as it was applied, with all decisions taken."""
    function: str | None = None
    """The function to lower, if the payload has several."""
    out: OutputFile | None = None
    """Where to write the lowered module (default: standard output)."""
    object: OutputFile | None = None
    """Where to write an object file of the lowered module, for the target."""
    target: str = "host"
    """The processor that guesses and the object are for: host, avx512, avx2, sse2 or neon."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Lower and print; errors are raised."""
        import sys

        from nestor.files import replacing, write_atomically
        from nestor.schedules.kernel.building import build_object
        from nestor.schedules.kernel.lowering import lower
        from nestor.schedules.language.linking import link

        opened = open_payload(
            self.payload, self.function, self.library, self.schedule, self.choice, self.target,
            self.llvm,
        )  # fmt: skip
        linked = link(opened.library, opened.schedule, opened.choice, print_after=self.print_after)
        lowered = lower(opened.payload, linked, opened.tools)
        if self.resolved is not None:
            resolved = link(opened.library, opened.schedule, opened.choice)
            write_atomically(self.resolved, resolved.readable())
        if self.out is not None:
            write_atomically(self.out, lowered.text)
        if self.object is not None:
            with replacing(self.object) as scratch:
                build_object(lowered, opened.target, opened.tools, scratch)
        if self.json:
            print_json(
                {
                    "function": opened.payload.name,
                    "schedule": opened.schedule,
                    "choice": opened.choice,
                    "seconds": lowered.seconds,
                    "stages": [{"step": step, "module": text} for step, text in lowered.stages],
                    "module": lowered.text if self.out is None else None,
                }
            )
            return 0
        remark(f"{opened.schedule} {written(opened.choice)}")
        for step, text in lowered.stages:
            sys.stdout.write(f"// after {step}\n{text}\n")
        if self.out is None and self.object is None and not self.print_after:
            sys.stdout.write(lowered.text)
        return 0
