"""Validation: what a policy makes of programs that are neither trained on nor held out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.lto import LtoKind
from nestor.corpus.model import Program
from nestor.learn.experience import Tally
from nestor.learn.searches import LTO_MODES, MODES
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rollout.pool import Pool
from nestor.rollout.summaries import reads_program, summaries
from nestor.tune.build import Build
from nestor.tune.lto_build import make_builder

TOLD = "gc, told of the program"
"""The column of builds for which the compiler has the program's summary."""

Changes = Mapping[str, Mapping[str, float]]
"""Relative change of the linked bytes against stock by program, and by link mode or ``TOLD``."""


def judge(
    pool: Pool,
    programs: Sequence[Program],
    tally: Tally,
    folder: Path,
    progress: Progress = silent,
    lto: LtoKind | None = None,
) -> Callable[[Policy], Changes]:
    """Return the function that builds ``programs`` under a policy, with and without summaries.

    Stock builds and summaries are made once, when they are first needed.

    :param folder: takes the summaries and the policies' files.
    :param lto: build by LTO of this kind, where nothing needs a summary.
    :raises BuildError: (the function) if a program cannot be built.
    """
    every = MODES if lto is None else LTO_MODES
    stock: dict[str, Build] = {}
    told: dict[str, Path] = {}

    def build(program: Program, policy: Path | str, summary: Path | None = None) -> Build:
        modes = every if summary is None else ("gc",)
        builder = make_builder(pool, program, policy, modes, summary, lto)
        try:
            return builder.build({})
        finally:
            tally.count(builder.rollouts)
            builder.close()

    def changes(policy: Policy) -> Changes:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "policy.safetensors"
        bundle.save(policy, path)
        if lto is None and reads_program(policy) and not told:
            made = summaries(pool, programs, ["gc"], folder)
            told.update({program: summary for (program, _), summary in made.items()})
        found = {}
        for done, program in enumerate(programs):
            progress("Validating", done, len(programs))
            if program.name not in stock:
                stock[program.name] = build(program, "default")
            before, after = stock[program.name].sizes, build(program, path).sizes
            row = {str(mode): after[mode].loadable / before[mode].loadable - 1 for mode in every}
            if reads_program(policy) and program.name in told:
                knowing = build(program, path, told[program.name]).sizes["gc"]
                row[TOLD] = knowing.loadable / before["gc"].loadable - 1
            found[program.name] = row
        said = verdict(found)
        summed = f"mean {100 * said.mean:+.2f} %, worst {100 * said.worst:+.2f} %"
        progress(f"Validating: {summed}", len(programs), len(programs))
        return found

    return changes


@dataclass(frozen=True)
class Verdict:
    """Relative changes of linked bytes, summed up over programs and columns; 0 without programs."""

    mean: float
    worst: float


def verdict(changes: Changes) -> Verdict:
    """Return the mean and the largest of ``changes``."""
    numbers = [change for columns in changes.values() for change in columns.values()] or [0.0]
    return Verdict(sum(numbers) / len(numbers), max(numbers))
