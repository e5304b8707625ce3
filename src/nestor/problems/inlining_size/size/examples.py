"""Examples for a size model: what functions were made of, and what they weighed.

One row is one function of one compile, joined by its symbol's name. Its *bytes* are those of
:class:`nestor.compiler.objects.Function`: code, unwind entry and exception table. Every module is
compiled twice, by the stock heuristic and with one answer in twenty turned around, so that a model
sees functions as a search makes them.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import Function, Measure, ObjectError, measure
from nestor.compiler.process import run
from nestor.compiler.releases import FUNCTION_LOG
from nestor.corpus.model import Corpus, Module, Split
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Metadata
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request
from nestor.problem.trajectory import LogError, Trajectory
from nestor.problems.inlining_size.builtins import NAME
from nestor.problems.inlining_size.log import read as read_trajectory
from nestor.problems.inlining_size.plugin_flags import request_flags
from nestor.problems.inlining_size.size import function_log
from nestor.problems.inlining_size.size.function_log import FunctionLog
from nestor.progress import Progress, silent
from nestor.rollout.kept import Arrays, keep_arrays, read_arrays
from nestor.temporary import temporary_folder

_FORM: Final = 2
"""Raise it when kept examples hold something else: they are then compiled again."""

F64 = npt.NDArray[np.float64]

EXPLORE = 0.05
"""Part of the answers that an exploring compile turns around."""


@dataclass(frozen=True)
class Compiled:
    """One compile: what was logged before code generation, and what came of it."""

    module: Module
    log: FunctionLog
    sizes: Measure
    trajectory: Trajectory | None = None
    """If it was asked for."""
    cpu_seconds: float = 0.0

    def bytes_by_name(self) -> dict[str, int]:
        """Return each function's bytes."""
        return {function.name: function.size for function in self.sizes.functions}


@dataclass(frozen=True)
class Examples:
    """Functions of many compiles."""

    counts: tuple[str, ...]
    x: F64
    """``[rows, counts]``"""
    y: F64
    """Bytes, ``[rows]``."""
    project: npt.NDArray[np.str_]
    """``[rows]``"""
    unmatched: int
    """Logged functions whose symbol the object does not have: aliases that share its place."""


def compile_logged(request: Request, pool: Pool) -> Compiled | None:
    """Compile with code and with a function log; None if that fails.

    :raises ToolchainError: if this release of LLVM has no function log.
    """
    pool.plugin.toolchain.require(FUNCTION_LOG)
    with temporary_folder("size") as text:
        folder = Path(text)
        out, log = folder / "module.o", folder / "functions"
        command = compile_command(
            pool.plugin.toolchain,
            request.unit.options,
            pool.corpus.bitcode(request.unit),
            out,
            [
                *request_flags(request, pool.plugin, pool.place.files, folder / "log"),
                *function_log.flags(log),
            ],
        )
        outcome = run(command, pool.limits)
        if not outcome.ok:
            return None
        try:
            trajectory = read_trajectory(folder / "log") if request.log else None
            logged, sizes = function_log.read(log), measure(out)
        except (LogError, ObjectError):
            return None
        return Compiled(request.unit, logged, sizes, trajectory, outcome.cpu_seconds)


def exploring(part: float = EXPLORE) -> TreesPolicy:
    """Return the policy that, sampled, leaves the default with the probability ``part``."""
    leaf = np.zeros(1, np.int32)
    logit = np.array([np.log(part / (1 - part))])
    return TreesPolicy(
        Metadata(
            kind="trees", features=("cost_estimate",), answers="deviation", transform="none",
            problem=NAME,
        ),
        root=leaf, feature=leaf - 1, threshold=np.zeros(1), left=leaf, right=leaf, value=logit,
    )  # fmt: skip


def seed_of(module: Module) -> int:
    """Return the seed with which an exploring compile of ``module`` draws its answers."""
    return int(hashlib.sha256(module.name.encode()).hexdigest()[:12], 16)


def join(compiled: Iterable[Compiled]) -> Examples:
    """Return the functions of all compiles; identical rows of one module count once."""
    counts: tuple[str, ...] = ()
    x, y, project, unmatched = [], [], [], 0
    seen: set[tuple[str, str, bytes]] = set()
    for one in compiled:
        counts = one.log.counts
        sizes = one.bytes_by_name()
        for name, values in zip(one.log.names, one.log.values, strict=True):
            key = (one.module.name, name, values.tobytes())
            if key in seen:
                continue
            seen.add(key)
            if name not in sizes:
                unmatched += 1
                continue
            x.append(values)
            y.append(float(sizes[name]))
            project.append(one.module.project)
    return Examples(
        counts, np.array(x).reshape(-1, len(counts)), np.array(y), np.array(project), unmatched
    )


def drawn(corpus: Corpus, splits: Sequence[Split], each: int, seed: int) -> tuple[Module, ...]:
    """Return at most ``each`` modules of every project in ``splits``, drawn by ``seed``."""
    rng = np.random.default_rng(seed)
    chosen: list[Module] = []
    for project in corpus.projects:
        own = [m for m in corpus.modules if m.project == project.name]
        if project.split in splits:
            order = rng.permutation(len(own))[:each]
            chosen += [own[place] for place in sorted(order)]
    return tuple(chosen)


def collect(
    pool: Pool,
    modules: Sequence[Module],
    folder: Path,
    progress: Progress = silent,
    policy: NamedPolicy | None = None,
) -> list[tuple[Compiled, Compiled]]:
    """Compile ``modules`` by stock and by another; those of which a compile fails are left out.

    :param folder: where compiles are kept, by what they depend on.
    :param policy: whose the second compile is; it explores without.
    """
    explore = NamedPolicy.of(exploring(), "exploring")

    def both(module: Module) -> tuple[Compiled, Compiled] | None:
        stock = _kept(Request(module, DEFAULT), pool, folder)
        request = Request(module, policy or explore, seed=None if policy else seed_of(module))
        other = stock and _kept(request, pool, folder)
        return (stock, other) if stock and other else None

    found = pool.map(both, modules, progress, "Compiling examples")
    return [pair for pair in found if pair is not None]


def _kept(request: Request, pool: Pool, folder: Path) -> Compiled | None:
    module = request.unit
    depends = [
        pool.plugin.toolchain.build_id, pool.plugin.digest, module.digest, list(module.options),
        request.seed, request.policy and request.policy.digest, _FORM,
    ]  # fmt: skip
    name = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:32]
    path = folder / f"{name}.npz"
    arrays = read_arrays(path)
    if arrays is not None:
        return _from_arrays(arrays, module)
    compiled = compile_logged(request, pool)
    if compiled is not None:
        keep_arrays(_to_arrays(compiled), path)
    return compiled


def _to_arrays(one: Compiled) -> Arrays:
    text = {
        "counts": one.log.counts,
        "names": one.log.names,
        "sections": dict(one.sizes.sections),
        "functions": [list(astuple(f)) for f in one.sizes.functions],
    }
    words = np.frombuffer(json.dumps(text).encode(), np.uint8)
    return {"text": words, "values": one.log.values}


def _from_arrays(arrays: Arrays, module: Module) -> Compiled:
    text = json.loads(arrays["text"].tobytes())
    log = FunctionLog(tuple(text["counts"]), tuple(text["names"]), arrays["values"])
    functions = tuple(Function(*columns) for columns in text["functions"])
    return Compiled(module, log, Measure(text["sections"], functions))
