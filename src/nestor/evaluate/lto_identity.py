"""The identity gate under LTO: ways to link that must give the same program.

For the default heuristic: stock lld, the plugin inside it following the default, and the same with
the log. For a policy: as in use, and with the log. Failures are results.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from nestor.compiler.lto import LtoKind
from nestor.corpus.model import Program
from nestor.evaluate.corpus_identity import CorpusIdentity, Difference, ModuleIdentity
from nestor.evaluate.result import Failure
from nestor.progress import Progress, silent
from nestor.rollout.lto import LtoRequest, lto_link, prelink
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool


def check_lto(
    pool: Pool,
    programs: Sequence[Program],
    policy: PolicyFile,
    kinds: Sequence[LtoKind],
    progress: Progress = silent,
) -> CorpusIdentity:
    """Link ``programs`` in all ways that must agree; each program and kind is one entry."""
    cases = list(product(programs, kinds))
    objects = {kind: prelink(pool, programs, kind, progress) for kind in kinds}

    def one(case: tuple[Program, LtoKind]) -> ModuleIdentity:
        program, kind = case
        used = LtoRequest(program, kind, policy=policy.argument)
        ways = {"plugin": used, "plugin with the log": replace(used, log=True)}
        if policy.policy is None:
            ways = {"stock": LtoRequest(program, kind), **ways}
        return _check(pool, f"{program.name} ({kind} LTO)", ways, objects[kind])

    checked = pool.map(one, cases, progress, "Comparing LTO links")
    plugin = pool.plugin
    return CorpusIdentity(
        policy.name,
        tuple(checked),
        {
            "corpus": pool.corpus.digest,
            "compiler": plugin.toolchain.build_id,
            "plugin": plugin.digest,
            "policy": policy.digest,
        },
    )


def _check(
    pool: Pool, name: str, ways: dict[str, LtoRequest], objects: dict[str, Path]
) -> ModuleIdentity:
    made: dict[str, str] = {}
    failures = []
    decisions = 0
    with tempfile.TemporaryDirectory(prefix="nestor-identity-") as folder:
        for way, request in ways.items():
            kept = Path(folder) / "program"
            done = lto_link(pool, replace(request, keep=kept), objects)
            if done.failure is not None:
                failures.append(Failure(name, way, done.failure))
                continue
            made[way] = hashlib.sha256(kept.read_bytes()).hexdigest()
            decisions += sum(len(log) for log in done.trajectories.values())
    reference, *others = ways
    compared = [way for way in others if way in made and reference in made]
    differing = [
        Difference(name, way, reference, "another program")
        for way in compared
        if made[way] != made[reference]
    ]
    return ModuleIdentity(
        module=name,
        comparisons=len(others),
        identical=len(compared) - len(differing),
        decisions=decisions,
        differing=tuple(differing),
        failures=tuple(failures),
    )
