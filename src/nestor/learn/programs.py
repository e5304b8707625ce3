"""Which programs and units of a corpus a learner may look at, and the default heuristic on them."""

from collections.abc import Sequence

from nestor.corpus.model import Corpus, CorpusError, Module, Program
from nestor.learn.accounting import Tally
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent


def training_programs(corpus: Corpus) -> tuple[Program, ...]:
    """Return the programs that a learner may look at.

    :raises CorpusError: if the corpus has none.
    """
    programs = corpus.programs_of("train")
    if not programs:
        raise CorpusError(
            f"The corpus {corpus.root} has no programs in the split train, so nothing can be"
            " scored; 'nestor corpus info' shows its splits."
        )
    return programs


def units_of(corpus: Corpus, programs: Sequence[Program]) -> tuple[Module, ...]:
    """Return the units of ``programs``, each once."""
    names = dict.fromkeys(name for program in programs for name in program.modules)
    return tuple(corpus.module(name) for name in names)


def largest_programs(programs: Sequence[Program]) -> tuple[Program, ...]:
    """Return the program of most units of each project: the others repeat most of its code."""
    best: dict[str, Program] = {}
    for program in programs:
        before = best.get(program.project)
        if before is None or len(program.modules) > len(before.modules):
            best[program.project] = program
    return tuple(best.values())


def default_rollouts(
    pool: Pool,
    units: Sequence[Module],
    tally: Tally,
    progress: Progress = silent,
    *,
    keep: bool = False,
) -> dict[str, Rollout]:
    """Return what the default heuristic does in each unit by its name; failures are absent.

    :param keep: keep the objects too.
    :raises CorpusError: if there is not one decision to learn from.
    """
    requests = [Request(unit, DEFAULT, log=True, keep=keep) for unit in units]
    done = pool.run(requests, progress, "Recording the default heuristic")
    tally.add(done)
    if not any(len(r.trajectory) for r in done if r.trajectory is not None):
        raise nothing_to_decide(tally)
    return {r.request.unit.name: r for r in done if r.ok}


def nothing_to_decide(tally: Tally) -> CorpusError:
    """Return the error for a corpus without a decision, with the first reasons for failures."""
    reasons = "; ".join(sorted(tally.reasons)[:3]) or "nothing to decide"
    return CorpusError(f"No module of the corpus gave a decision to learn from: {reasons}.")
