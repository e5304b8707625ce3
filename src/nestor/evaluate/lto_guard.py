"""The guard under LTO: never larger than stock LTO.

What can go back to the stock heuristic is a back end's module: under full LTO that is the whole
program, under thin LTO a module with what it imports. Everything is decided in the link, so
every trial is one.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from nestor.compiler.lto import LtoKind
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.evaluate.guard import Choice, Guard, GuardError, ModuleKeys, guard_all
from nestor.policy.overrides import Key, to_text
from nestor.progress import Progress, silent
from nestor.rollout.lto import LtoLink, LtoRequest, lto_link, prelink, unit_of
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool


def guard_lto(
    pool: Pool,
    programs: Sequence[Program],
    policy: PolicyFile,
    kind: LtoKind,
    modes: Sequence[LinkMode] = ("gc",),
    progress: Progress = silent,
) -> Guard:
    """Choose the modules that go back, one list for all programs; see :func:`guard`.

    The merged module of full LTO has the same name in every program, so one list sends all
    programs back or none.

    :raises GuardError: if a program cannot be linked.
    """
    objects = prelink(pool, programs, kind, progress)
    return guard_all(
        [_LtoChoice(pool, p, policy, kind, modes, objects) for p in programs], progress
    )


class _LtoChoice(Choice):
    """One program, whose modules are decided on in the linker."""

    trials = 4

    def __init__(
        self,
        pool: Pool,
        program: Program,
        policy: PolicyFile,
        kind: LtoKind,
        modes: Sequence[LinkMode],
        objects: Mapping[str, Path],
    ):
        self._pool = pool
        self._objects = objects
        self._stock = LtoRequest(program, kind, policy="default", log=True)
        self._policy = replace(self._stock, policy=policy.argument)
        asked = self._link(replace(self._policy, mode=modes[0])).trajectories
        units = {name: unit_of(self._stock, objects[name]) for name in program.modules}
        super().__init__(
            program,
            modes,
            {name: asked[unit].module for name, unit in units.items() if unit in asked},
        )
        self._units = {self.keys[name]: unit for name, unit in units.items() if name in self.keys}

    def measured(self, back: ModuleKeys) -> Mapping[LinkMode, int]:
        with tempfile.TemporaryDirectory(prefix="nestor-guard-") as folder:
            path = Path(folder) / "overrides"
            path.write_text(to_text({Key("module", key): False for key in back}))
            whole = back == self._all
            request = self._stock if whole else replace(self._policy, overrides=path)
            request = replace(request, log=False)
            links = self._pool.map(
                lambda mode: self._link(replace(request, mode=mode)), self._modes
            )
        return {
            mode: link.measure.loadable
            for mode, link in zip(self._modes, links, strict=True)
            if link.measure
        }

    @cached_property
    def growths(self) -> Mapping[LinkMode, Mapping[int, float]]:
        # What a link's mode drops is in no unit's code, so one mode says it for all.
        before, after = self._link(self._stock).units, self._link(self._policy).units
        growth = {
            key: float(after.get(unit, 0) - before.get(unit, 0))
            for key, unit in self._units.items()
        }
        return dict.fromkeys(self._modes, growth)

    def _link(self, request: LtoRequest) -> LtoLink:
        link = lto_link(self._pool, request, self._objects)
        if link.failure is not None:
            raise GuardError(f"{request.program.name}: {link.failure}.")
        return link
