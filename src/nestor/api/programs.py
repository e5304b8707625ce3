"""Judge policies on whole programs, and search for the decisions that make one smallest."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nestor.api.workplace import policy_of
from nestor.build.build import check_modes, find_build, inside_lto
from nestor.corpus.model import Program, Split
from nestor.evaluate import compare
from nestor.evaluate.compare import EvaluateSettings
from nestor.evaluate.result import Evaluation
from nestor.files import claimed
from nestor.numbers import refuse_number
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.in_builds import search_starts
from nestor.problem.levels import require_decided
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.rollout.stock import StockKeepingPool
from nestor.tune import session
from nestor.tune.moves import moves_of
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings


def evaluate_policies(
    pool: Pool,
    policies: Sequence[NamedPolicy | str],
    *,
    programs: Sequence[Program | str] = (),
    split: Split | Literal["all"] | None = None,
    build: str | None = None,
    modes: Sequence[str] = (),
    overrides: str | None = None,
    summary: bool = False,
    smoke: bool = False,
    fresh: bool = False,
    progress: Progress = silent,
) -> tuple[Evaluation, ...]:
    """Build programs stock and under each policy, and compare their scores.

    :param policies: policies, or their names or paths.
    :param programs: programs of the pool's corpus, or their names; none takes those of ``split``.
    :param split: None takes the projects held out from training.
    :param build: how programs are built, such as ``full-lto``; None is the problem's usual way.
    :param modes: modes of that build, such as ``gc``; none takes its usual one.
    :param overrides: the text of a file of answers that stand above every policy's.
    :param summary: give summaries of the programs to policies that read them.
    :param smoke: run the programs' smoke tests, which executes code of the corpus.
    :param fresh: compile the stock side again, which measures the policies' compile time; without
        it stock objects that an earlier evaluation kept in the cache are used.
    :return: an evaluation for each policy and, within it, for each mode.
    :raises NestorError: if a policy, program, build or mode does not exist.
    """
    way = find_build(pool.problem, build)
    check_modes(way, modes)
    chosen = tuple(_program(pool, one) for one in programs)
    named = [policy_of(pool.problem, policy) for policy in policies]
    require_decided(pool.problem, pool.corpus, named)
    return compare.evaluate(
        StockKeepingPool(pool, fresh=fresh),
        way,
        chosen or compare.select_programs(pool.corpus, split),
        named,
        EvaluateSettings(tuple(modes), overrides, summary, smoke),
        progress,
    )


def tune_program(
    pool: Pool,
    program: Program | str,
    folder: str | os.PathLike[str],
    *,
    policy: NamedPolicy | str | None = None,
    compiles: float = 25.0,
    build: str | None = None,
    modes: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = silent,
) -> Tuned:
    """Search for the decisions of one program that make its score smallest.

    :param folder: keeps the state of the search; the same call goes on from there.
    :param policy: where the search starts; None takes the best of stock and the packaged policies.
    :param compiles: whole-program compiles to spend.
    :param build: as in :func:`evaluate_policies`.
    :param modes: those in which the program may not grow, and whose mean is made small.
    :return: the result, whose ``text(pool.problem)`` is a file of overrides.
    :raises NestorError: if the folder holds another search, another process is at work in it, or
        the program cannot be built.
    """
    refuse_number("compiles", compiles)
    refuse_number("seed", seed)
    way = find_build(pool.problem, build)
    wanted = tuple(modes) or way.modes[:1]
    check_modes(way, wanted)
    packaged = search_starts(moves_of(pool.problem).policies, lto=inside_lto(way))
    further = () if policy is not None else packaged
    start = DEFAULT if policy is None else policy_of(pool.problem, policy)
    require_decided(pool.problem, pool.corpus, [start])
    searched = _program(pool, program)
    with claimed(Path(folder), remedy="name another folder"):
        summary = session.summary_for_search(pool, way, searched, wanted[0], progress)
        return session.tune(
            pool,
            way,
            searched,
            start,
            TuneSettings(wanted, sweep=policy is not None, policies=further),
            SearchSettings(compiles=compiles),
            seed,
            Path(folder),
            summary=summary,
            progress=progress,
        )


def _program(pool: Pool, program: Program | str) -> Program:
    return pool.corpus.program(program) if isinstance(program, str) else program
