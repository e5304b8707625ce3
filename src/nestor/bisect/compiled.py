"""Modules compiled under policies and overrides, equal compiles once, with what they cost."""

from collections.abc import Mapping

from nestor.build.build import BuildError
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import OverrideFormat, Overrides
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent

Modules = Mapping[str, Rollout]
"""Compiled modules by name; their objects are kept."""


class CompiledModules:
    """Compiles modules of a program; a module is compiled once under the same overrides.

    :param summary: the text of the program's summary, for policies that read one.
    """

    def __init__(self, pool: Pool, summary: str | None = None) -> None:
        self.compiles = 0
        self.cpu_seconds = 0.0
        self.pool = pool
        self._summary = summary
        self._format: OverrideFormat = pool.problem.overrides()
        self._done: dict[tuple[str, str, str], Rollout] = {}

    def copy(self) -> "CompiledModules":
        """Return another that has compiled the same, and counts from there."""
        new = CompiledModules(self.pool, self._summary)
        new._done.update(self._done)
        return new

    def compile(
        self,
        policy: NamedPolicy,
        overrides: Mapping[str, Overrides],
        progress: Progress = silent,
        *,
        log: bool = False,
    ) -> Modules:
        """Compile modules under ``policy``, those with the same overrides once.

        :param overrides: by the module's name.
        :param log: with the trajectories, and the names of functions.
        :raises BuildError: if a module cannot be compiled.
        """
        texts = {n: self._format.to_text(own) if own else "" for n, own in overrides.items()}
        keys = {name: (name, policy.digest, text) for name, text in texts.items()}
        wanted = {
            name: Request(
                self.pool.corpus.module(name),
                policy,
                overrides=texts[name] or None,
                summary=None if policy.policy is None else self._summary,
                log=log,
                names=log,
                keep=True,
            )
            for name, key in keys.items()
            if key not in self._done or (log and self._done[key].trajectory is None)
        }
        done = self.pool.run(list(wanted.values()), progress, f"Compiling {policy.name}")
        for name, rollout in zip(wanted, done, strict=True):
            self.compiles += 1
            self.cpu_seconds += rollout.cpu_seconds
            if rollout.object is None or not rollout.ok:
                raise BuildError(f"{name}: {rollout.failure}.")
            self._done[keys[name]] = rollout
        return {name: self._done[key] for name, key in keys.items()}
