"""The state of a search on disk, from which the same call goes on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nestor.build.build import Build
from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool, Problem
from nestor.tune.search import SearchSettings
from nestor.tune.state import Point, State, Tried

_STATE: Final = 2
"""The form in which a state is kept."""

_LARGEST: Final = 1 << 30
"""Bytes of a kept search, at most."""

_IN_WORDS: Final = {
    "build": "the way of linking",
    "runs": "the runs of the program",
    "problem": "the problem or its score",
    "plugin": "the plugin (another version of Nestor)",
    "search": "how it searches (another version of Nestor)",
    "settings": "the modes or the starts",
    "state": "what it keeps (another version of Nestor)",
    "summary": "the summary of the program",
}
"""What an identity has, where its name does not say it."""


@dataclass(frozen=True)
class KeptSearch:
    """What a search goes on from."""

    start: str
    """Digest of the policy under which the overrides apply."""
    stock: ProgramBuild
    """Only its scores, columns and outputs."""
    state: State


def identity_of(
    pool: Pool,
    build: Build,
    program: Program,
    policy: NamedPolicy,
    settings: Any,
    budget: SearchSettings,
    seed: int,
    summary: str | None,
) -> dict[str, Any]:
    """Return what a search depends on; the number of compiles may be raised later.

    :param settings: a dataclass of plain data.
    """
    identity = {
        "corpus": pool.corpus.digest,
        "program": program.name,
        "runs": _runs_of(pool.corpus, program),
        "problem": pool.problem.name_and_score,
        "build": build.name,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
        "policy": policy.digest,
        "summary": None if summary is None else hashlib.sha256(summary.encode()).hexdigest(),
        "settings": asdict(settings),
        "search": {k: v for k, v in asdict(budget).items() if k != "compiles"},
        "seed": seed,
        "state": _STATE,
    }
    plain: dict[str, Any] = json.loads(json.dumps(identity))  # as it is read back
    return plain


def _runs_of(corpus: Corpus, program: Program) -> Any:
    """Return the longer runs of a program and what they read; the corpus's digest has neither."""
    if program.workload is None:
        return None
    return [asdict(program.workload), corpus.project(program.project).inputs]


def save(path: Path, identity: Mapping[str, Any], kept: KeptSearch, problem: Problem) -> None:
    """Write a search to ``path``, whole or not at all."""
    state = kept.state
    content = {
        "identity": identity,
        "start": kept.start,
        "stock": {mode: dict(columns) for mode, columns in kept.stock.columns.items()},
        "outputs": dict(kept.stock.outputs),
        "step": state.step,
        "overrides": problem.overrides().to_text(state.overrides),
        "tried": {str(move): found.to_json() for move, found in sorted(state.tried.items())},
        "curve": [point.to_json() for point in state.curve],
        "exhausted": state.exhausted,
        "written": None if state.written is None else state.written.to_json(),
    }
    write_atomically(path, json.dumps(content))


def demand_same(path: Path, kept: Any, identity: Mapping[str, Any]) -> None:
    """Refuse to go on from a search that depends on something else.

    :param kept: the identity in the file at ``path``.
    :raises NestorError: which says in what they differ.
    """
    if kept == identity:
        return
    before = kept if isinstance(kept, dict) else {}
    names = [name for name in identity if before.get(name) != identity[name]]
    other = ", ".join(_IN_WORDS.get(name, name) for name in names) or "another version of Nestor"
    raise NestorError(
        f"{path.parent} holds another search; it differs in: {other}. Take another --out, or"
        " remove it."
    )


def load(path: Path, identity: Mapping[str, Any], problem: Problem) -> KeptSearch | None:
    """Read a search from ``path``; None if there is none.

    :raises NestorError: if the file holds another search, or none.
    """
    try:
        text = read_regular(path, "a kept search", limit=_LARGEST)
    except ReadError as error:
        if error.absent:
            return None
        raise
    try:
        content: dict[str, Any] = json.loads(text)
        own = content["identity"]
    except (ValueError, KeyError, TypeError) as error:
        raise NestorError(
            f"{path} is no kept search ({error}): remove it, or take another --out."
        ) from None
    demand_same(path, own, identity)
    stock = ProgramBuild(
        overrides={},
        score=problem.report.score,
        columns=content["stock"],
        functions={},
        trajectories={},
        modules={},
        outputs=content["outputs"],
    )
    state = State(
        step=int(content["step"]),
        overrides=problem.overrides().parse(content["overrides"]),
        tried={int(move): Tried.from_json(found) for move, found in content["tried"].items()},
        curve=tuple(Point.from_json(point) for point in content["curve"]),
        exhausted=bool(content["exhausted"]),
        written=None if content["written"] is None else Calls.from_json(content["written"]),
    )
    return KeptSearch(str(content["start"]), stock, state)
