"""Builds of one program by LTO: as :mod:`nestor.tune.build`, but the whole program is the unit.

All decisions are made in the link, so any change of an answer means another link.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import xxhash

from nestor.compiler.lto import LtoKind
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.policy.overrides import Overrides, to_text
from nestor.progress import Progress, silent
from nestor.rollout.lto import LtoLink, LtoRequest, lto_link, prelink
from nestor.rollout.pool import Pool
from nestor.tune.asked import Answers, Asked, Made, known
from nestor.tune.build import Build, Builder, BuildError, ProgramBuilder


@dataclass(frozen=True)
class _Made(Made):
    """One build."""

    build: Build


class LtoBuilder:
    """Builds of one program under one policy that decides inside the linker."""

    def __init__(
        self,
        pool: Pool,
        program: Program,
        policy: Path | str,
        modes: Sequence[LinkMode] = ("gc",),
        kind: LtoKind = "full",
    ):
        """Prepare; nothing is compiled yet. ``policy``: a policy file or ``default``."""
        self.pool = pool
        self.program = program
        self.policy = policy
        self.modes = tuple(modes)
        self.kind = kind
        self.compiled = 0
        """Builds so far; may be set back by who resumes a search."""
        self.rollouts = 0
        """Links ever made, one for each mode of a build."""
        self.cpu_seconds = 0.0
        self._made: list[_Made] = []
        self._temporary = tempfile.TemporaryDirectory(prefix="nestor-tune-")

    def close(self) -> None:
        """Delete the overrides' file."""
        self._temporary.cleanup()

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far."""
        return float(self.compiled)

    def build(self, overrides: Overrides, progress: Progress = silent) -> Build:
        """Link in every mode and measure, unless nothing that was asked has changed.

        :raises BuildError: if a module or a link fails.
        """
        made = known(self._made, Answers.of(overrides))
        if made is None:
            made = self._make(overrides, progress)
            self._made.append(made)
        return replace(made.build, overrides=dict(overrides))

    def keep_only(self, overrides: Overrides) -> None:
        """Forget every build but that under ``overrides``."""
        made = known(self._made, Answers.of(overrides))
        self._made = [] if made is None else [made]

    def _make(self, overrides: Overrides, progress: Progress) -> _Made:
        text = Path(self._temporary.name) / "overrides"
        text.write_text(to_text(overrides))
        objects = prelink(self.pool, [self.program], self.kind, progress)
        requests = [
            LtoRequest(
                self.program,
                self.kind,
                mode,
                self.policy,
                overrides=text if overrides else None,
                log=True,
            )
            for mode in self.modes
        ]
        links = self.pool.map(lambda r: lto_link(self.pool, r, objects), requests, progress)
        self.compiled += 1
        self.rollouts += len(links)
        self.cpu_seconds += sum(link.cpu_seconds for link in links)
        for link in links:
            if link.failure is not None:
                raise BuildError(f"{self.program.name}: {link.failure}.")
        # What the mode of the link changes comes after the decisions.
        trajectories = links[0].trajectories
        asked = Asked.of(trajectories.values())
        return _Made(
            asked,
            asked.among(Answers.of(overrides)),
            Build(
                overrides=dict(overrides),
                sizes={m: k.measure for m, k in zip(self.modes, links, strict=True) if k.measure},
                functions={m: _bytes(k) for m, k in zip(self.modes, links, strict=True)},
                trajectories=trajectories,
            ),
        )


def make_builder(
    pool: Pool,
    program: Program,
    policy: Path | str,
    modes: Sequence[LinkMode],
    summary: Path | None,
    lto: LtoKind | None,
) -> ProgramBuilder:
    """Return what builds ``program``: by LTO, or (None) object by object.

    :param summary: the program's summary; inside LTO the program itself is there to be read.
    """
    if lto is None:
        return Builder(pool, program, policy, modes, summary)
    return LtoBuilder(pool, program, policy, modes, lto)


def _bytes(link: LtoLink) -> dict[int, int]:
    """Return what each function takes of the program, by function id."""
    ids = {name: i for log in link.trajectories.values() for i, name in log.names.items()}
    found: dict[int, int] = {}
    for name, size in link.functions.items():
        function = ids.get(name)
        if function is None:
            function = xxhash.xxh3_64_intdigest(name.encode())
        found[function] = found.get(function, 0) + size
    return found
