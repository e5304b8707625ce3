"""``nestor costmodel record-trace`` and ``trace-model``: what the blocks of a real run cost."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.markup import escape

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFolder
from nestor.cli.remarks import remark

# Models take a second to import, so they are imported when a command runs.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nestor.cost.trace.messages import EntryId
    from nestor.cost.trace.replay import SegmentCost

    Pricing = Callable[[Mapping[EntryId, bytes], Mapping[str, int]], Iterator[SegmentCost]]

_COUNTING = "instruction_counting"
_PROGRAM = "program"


@dataclass(frozen=True)
class RecordTrace:
    r"""Make a trace of the basic blocks that a run of a program executes.

    Standard input is what valgrind's tool lackey prints of the run. The program must be linked
    with -no-pie from objects compiled with -fbasic-block-address-map; code without a map, such as
    that of libraries, is left out. The folder gets bb_trace.pb and function_index.pb, in the format
    of Google's ml-compiler-opt.

    Examples:
        valgrind --tool=lackey --trace-mem=yes --log-fd=9 ./sort words 9>&1 >/dev/null \
            | nestor costmodel record-trace ./sort --out trace
    """

    program: tyro.conf.Positional[Path]
    """The program that ran."""
    out: OutputFolder
    """The folder to write."""
    max_blocks_per_segment: int = 1 << 23
    """Blocks after which a new segment of the trace begins."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Record, and say how much."""
        from nestor.cost.trace.messages import TraceError
        from nestor.cost.trace.record import record

        if self.max_blocks_per_segment < 1:
            raise TraceError("--max-blocks-per-segment must be at least 1.")
        try:
            blocks = record(sys.stdin.buffer, self.program, self.out, self.max_blocks_per_segment)
        except OSError as error:
            raise TraceError(
                f"'{self.out}' cannot be written ({error.strerror}); choose another place."
            ) from None
        if self.json:
            print_json({"blocks": blocks, "out": str(self.out)})
        else:
            stdout.print(f"{blocks:,} blocks ran: {escape(str(self.out))}", soft_wrap=True)
        return 0


@dataclass(frozen=True)
class TraceModel:
    r"""Print what a trace costs with the code of the objects at hand: a number for each segment.

    It takes the arguments and the files of basic_block_trace_model, which the register-allocation
    trainers of Google's ml-compiler-opt start for their reward, and prints what they read; the
    installed command 'basic_block_trace_model' is this one under that name. The objects must be
    compiled with -fbasic-block-address-map. Each block that ran counts with the predicted cycles of
    a single pass, or of a repeated one if it jumps back to its own beginning; calls, jumps, cache
    misses and mispredicted branches cost nothing, unless the model is 'program'.

    --model-type is 'mca' (llvm-mca's cycles for --cpu-name, block by block), 'instruction_counting'
    or any cost model: 'shipped', 'bound' or a model file. Given twice, the last one counts, so a
    trainer that passes 'mca' is given another one by its extra flags.

    With 'program' it is the model of whole programs that 'nestor costmodel program' has: blocks
    that nearly always follow each other are one piece, and taken branches and the mispredictions of
    conditions cost what they cost on a machine. Mispredictions are predicted from the trace and
    the code. Cache misses and mispredicted targets of indirect branches cost nothing.

    Examples:
        nestor costmodel trace-model --bb-trace-path trace/bb_trace.pb \
            --function-index-path trace/function_index.pb \
            --corpus-path out/corpus_description.json --model-type shipped
        nestor costmodel trace-model --bb-trace-path trace/bb_trace.pb \
            --function-index-path trace/function_index.pb \
            --binary-path program --model-type program --penalties "AMD Zen 4"
    """

    bb_trace_path: Path
    """The trace."""
    function_index_path: Path
    """Which number stands for which function in the trace."""
    corpus_path: Path | None = None
    """The corpus_description.json of compiled modules: NAME.bc.o beside it for each module."""
    binary_path: Path | None = None
    """A linked program instead of a corpus."""
    serialized_bbs_path: Path | None = None
    """Code of blocks that the modules lack."""
    model_type: str = "mca"
    """The cost model."""
    cpu_name: str = "skylake"
    """The processor that 'mca' models, as LLVM names it."""
    penalties: str | None = None
    """For 'program': the file of a machine's penalties, or the name of one that comes with Nestor
    (default: this machine's)."""
    target_triple: str = "x86_64"
    """The target; x86-64 alone."""
    skip_missing: bool = False
    """Blocks that ran and that the code does not have cost nothing, and are counted in a remark.
    The compiler merges and removes blocks after register allocation, not always the same ones."""
    thread_count: str = "1"
    """Accepted and not needed: each distinct block is predicted once."""

    def run(self) -> int:
        """Replay and print; 1 if the trace has no segment."""
        from nestor.cost.elf import mapped
        from nestor.cost.trace import program
        from nestor.cost.trace.entries import codes
        from nestor.cost.trace.messages import TraceError

        if (self.corpus_path is None) == (self.binary_path is None):
            raise TraceError("Name either --corpus-path or --binary-path, and one alone.")
        if not self.target_triple.startswith("x86_64"):
            raise TraceError(f"The target '{self.target_triple}' has no cost model; use x86_64.")
        if self.penalties is not None and self.model_type != _PROGRAM:
            raise TraceError("--penalties are those of --model-type program; add it.")
        is_whole = self.model_type == _PROGRAM
        price = self._whole_programs() if is_whole else self._block_by_block()
        indices = program.function_index(self.function_index_path)
        if self.binary_path is not None:
            functions = iter(mapped.read(self.binary_path))
        else:
            assert self.corpus_path is not None
            functions = program.corpus_functions(self.corpus_path)
        code = codes(functions, indices)
        if self.serialized_bbs_path is not None:
            added = program.serialized_codes(self.serialized_bbs_path)
            code |= {entry: text for entry, text in added.items() if entry not in code}
        segments = runs = unanswered = missing = 0
        for segment in price(code, indices):
            sys.stdout.write(f"{segment.cost!r}\n")
            segments += 1
            runs += segment.runs
            unanswered += segment.unanswered
            missing += segment.missing
        if unanswered:
            remark(f"{unanswered:,} of {runs:,} blocks that ran have no answer and count nothing")
        if missing:
            remark(f"{missing:,} of {runs:,} blocks that ran are not in the code and cost nothing")
        return 0 if segments else 1

    def _block_by_block(self) -> "Pricing":
        from nestor.cost.baselines.mca import McaModel
        from nestor.cost.registry import open_model
        from nestor.cost.trace.program import segments
        from nestor.cost.trace.replay import Prices, cycles_of, instructions_of, replay

        price: Prices = instructions_of
        if self.model_type != _COUNTING:
            mca = self.model_type == "mca"
            price = cycles_of(McaModel(cpu=self.cpu_name) if mca else open_model(self.model_type))
        return lambda code, indices: replay(
            segments(self.bb_trace_path), code, indices, price, skip_missing=self.skip_missing
        )

    def _whole_programs(self) -> "Pricing":
        from nestor.cli.events.prices import prices
        from nestor.cost.trace.program import segments
        from nestor.events.traced import traced_runs
        from nestor.program_cost.trace import program_costs
        from nestor.program_cost.weights import packaged

        model, penalties = prices("shipped", None, self.penalties)
        weights = packaged(penalties.machine)
        return lambda code, indices: program_costs(
            traced_runs(
                segments(self.bb_trace_path, ordered=True), code, indices,
                skip_missing=self.skip_missing,
            ),
            model, penalties, weights,
        )  # fmt: skip


def entry() -> None:
    """Run ``basic_block_trace_model`` and exit (the console script)."""
    from nestor.cli.start import entry as start

    sys.argv[1:1] = ["costmodel", "trace-model"]
    start()
