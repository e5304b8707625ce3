"""A policy's decisions in a program as overrides that need no policy, and whether they suffice."""

from collections.abc import Mapping
from dataclasses import dataclass

from nestor.bisect.compiled import CompiledModules
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import Key, OverrideFormat, Overrides
from nestor.problem.problem import Pool, Problem
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Replay:
    """The decisions of one build, and what became of them under the default."""

    program: str
    policy: NamedPolicy
    overrides: Overrides
    comments: Mapping[Key, str]
    same: tuple[str, ...]
    """The modules whose objects are the same, bit for bit."""
    other: Mapping[str, str]
    """The others, each with the reason."""

    def text(self, problem: Problem) -> str:
        """Return the overrides file."""
        title = (
            f"program {self.program}\npolicy {self.policy.name} {self.policy.digest}\n"
            "What the policy decides otherwise than the default, for the policy 'default'."
        )
        return problem.overrides().to_text(self.overrides, self.comments, title)


def replay(
    pool: Pool,
    program: Program,
    policy: NamedPolicy,
    *,
    summary: str | None = None,
    progress: Progress = silent,
) -> Replay:
    """Compile ``program`` under ``policy``, and again under the default with its decisions.

    :param summary: the text of the program's summary, for policies that read one.
    :raises BuildError: if a module cannot be compiled.
    """
    modules = CompiledModules(pool, summary)
    form: OverrideFormat = pool.problem.overrides()
    nothing: dict[str, Overrides] = {key: {} for key in program.modules}
    before = modules.compile(policy, nothing, progress, log=True)
    overrides: dict[Key, object] = {}
    comments: dict[Key, str] = {}
    several: dict[str, set[str]] = {}
    for name, done in before.items():
        assert done.trajectory is not None
        for deviation in form.deviations(pool.plugin.toolchain, done.trajectory):
            for key, answer in deviation.replay.items():
                if overrides.setdefault(key, answer) != answer:
                    several.setdefault(name, set()).add(deviation.about)
                comments[key] = deviation.about
    after = modules.compile(DEFAULT, dict.fromkeys(program.modules, overrides), progress)
    same = tuple(name for name in before if before[name].object == after[name].object)
    other = {
        name: _reason(several.get(name, set()), done.trajectory)
        for name, done in before.items()
        if name not in same
    }
    return Replay(program.name, policy, overrides, comments, same, other)


def _reason(several: set[str], trajectory: Trajectory | None) -> str:
    if several:
        return f"one line would need several answers: {', '.join(sorted(several)[:3])}"
    if trajectory is not None and trajectory.facts.get("growth_cap_reached"):
        return "it grew to twice its size, where LLVM inlines no more under a policy of this kind"
    return "another module has its name, or a decision of it is in no log"
