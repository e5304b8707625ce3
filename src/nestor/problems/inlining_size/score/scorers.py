"""What a module's compiles score: bytes of its linked programs, by the weights of the stock link.

See :mod:`nestor.problems.inlining_size.score.weights`.
"""

import resource
from collections.abc import Mapping, Sequence

from nestor.build.linking import link
from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.score import Scorers
from nestor.problems.inlining_size.score.weights import weigh
from nestor.progress import Progress, silent


def scorers(
    pool: Pool,
    programs: Sequence[Program],
    rollouts: Mapping[str, Rollout],
    progress: Progress = silent,
) -> Scorers:
    """Link each program from the objects of ``rollouts`` and weigh what the links kept.

    Links run one by one, since each is timed: their CPU seconds are part of a budget's prices.
    """
    objects = {
        name: pool.objects.path(done.object) for name, done in rollouts.items() if done.object
    }
    links, seconds, failures = [], {}, []
    for number, program in enumerate(programs):
        progress("Linking stock", number, len(programs))
        before = _children_seconds()
        linked = link(
            pool.plugin.toolchain,
            pool.corpus,
            program,
            objects,
            want_kept=True,
            limits=pool.limits,
        )
        seconds[program.name] = _children_seconds() - before
        if linked.failure is not None:
            failures.append(f"{program.name}: {linked.failure}")
        links.append((program, linked))
    progress("Linking stock", len(programs), len(programs))
    sizes: dict[str, Measure] = {n: r.outcome for n, r in rollouts.items() if r.outcome is not None}
    return Scorers(weigh(links, sizes), seconds, tuple(failures))


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
