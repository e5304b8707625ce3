"""Tune one program from start to end: choose a start, search, keep what is resumable, sum up."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from nestor.compiler.demangle import demangle
from nestor.compiler.lto import LtoKind
from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.policy.overrides import Key, Overrides, parse, to_text
from nestor.progress import Progress, silent
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool
from nestor.rollout.summaries import reads_program
from nestor.tune.build import Build
from nestor.tune.lto_build import make_builder
from nestor.tune.search import Observer, Point, SearchSettings, State, search

THRESHOLDS = ("threshold:0", "threshold:15", "threshold:25")
"""The sweep that a search from the default must beat; the default itself is threshold:5."""


@dataclass(frozen=True)
class TuneSettings:
    """What a tuning run depends on besides program, policy and seed."""

    modes: tuple[LinkMode, ...] = ("gc",)
    """The link modes whose mean size is to become small; none of them may grow."""
    sweep: bool = True
    """From the default, try cost thresholds first and start from the best."""
    lto: LtoKind | None = None
    """Decide inside the linker, under LTO of this kind."""


@dataclass(frozen=True)
class Tuned:
    """What came of tuning a program."""

    program: str
    policy: PolicyFile
    """Under which the overrides apply."""
    summary: str | None
    """The text of the program's summary that the policy reads with them."""
    overrides: Overrides
    comments: Mapping[Key, str]
    stock: Build
    best: Build
    """Both linked in every mode, also in those that were not searched for."""
    modes: tuple[LinkMode, ...]
    """Those that were."""
    curve: tuple[Point, ...]
    """Verified sizes by whole-program compiles, stock first."""

    def text(self) -> str:
        """Return the overrides file."""
        title = [f"program {self.program}", f"policy {self.policy.name} {self.policy.digest}"]
        for mode, before in self.stock.sizes.items():
            after = self.best.sizes[mode].loadable
            title.append(
                f"linked bytes {mode}: {before.loadable:,} stock, {after:,} tuned"
                f" ({100 * (after / before.loadable - 1):+.2f} %)"
            )
        return to_text(self.overrides, self.comments, "\n".join(title))


def tune(
    pool: Pool,
    program: Program,
    policy: PolicyFile,
    settings: TuneSettings,
    budget: SearchSettings,
    seed: int,
    folder: Path,
    *,
    summary: Path | None = None,
    progress: Progress = silent,
    observe: Observer = lambda build, trials: None,
) -> Tuned:
    """Search for ``program``'s smallest build under ``policy`` and overrides.

    The result is never larger than stock in any of the link modes. The state of the search is
    kept in ``folder`` after every step; the same call goes on from there.

    :raises NestorError: if ``folder`` holds another search, or the program cannot be built.
    """
    told = None if summary is None else summary.read_text()
    identity = _identity(pool, program, policy, settings, budget, seed, told)
    path = folder / "search.json"
    kept = _load(path, identity)
    stock = _once(pool, program, policy_file("default"), get_args(LinkMode), None, settings.lto)
    limits = {mode: stock.sizes[mode].loadable for mode in settings.modes}
    if kept is None:
        chosen, curve = _choose_start(pool, program, policy, settings, stock, summary, progress)
        state = State(curve=curve)
    else:
        chosen, state = policy_file(str(kept["start"])), _state(kept)
    builder = make_builder(pool, program, chosen.argument, settings.modes, summary, settings.lto)

    def keep(new: State) -> None:
        _save(path, identity, chosen, new)

    try:
        keep(state)
        state = search(
            builder,
            state,
            budget,
            seed,
            progress=progress,
            observe=observe,
            keep=keep,
            limits=limits,
        )
        overrides = _effective(builder.build(state.overrides), chosen)
    finally:
        builder.close()
    best = _once(pool, program, chosen, get_args(LinkMode), summary, settings.lto, overrides)
    if any(best.sizes[mode].loadable > most for mode, most in limits.items()):
        chosen, best = policy_file("default"), stock
    return Tuned(
        program=program.name,
        policy=chosen,
        summary=told if reads_program(chosen.policy) else None,
        overrides=best.overrides,
        comments=_comments(pool, best),
        stock=stock,
        best=best,
        modes=settings.modes,
        curve=state.curve,
    )


def _once(
    pool: Pool,
    program: Program,
    policy: PolicyFile,
    modes: Sequence[LinkMode],
    summary: Path | None,
    lto: LtoKind | None,
    overrides: Overrides | None = None,
) -> Build:
    builder = make_builder(pool, program, policy.argument, modes, summary, lto)
    try:
        return builder.build(overrides or {})
    finally:
        builder.close()


def _choose_start(
    pool: Pool,
    program: Program,
    policy: PolicyFile,
    settings: TuneSettings,
    stock: Build,
    summary: Path | None,
    progress: Progress,
) -> tuple[PolicyFile, tuple[Point, ...]]:
    """Return the best of stock, ``policy`` and, from the default, the threshold sweep.

    A start that is larger than stock in one of the link modes is none.
    """
    candidates = [policy]
    if policy.path is None and settings.sweep:
        candidates += [policy_file(name) for name in THRESHOLDS]
    best = policy_file("default")
    sizes = [stock.sizes[mode] for mode in settings.modes]
    curve = [Point(0.0, *(sum(s) / len(sizes) for s in zip(*map(_bytes, sizes), strict=True)))]
    for number, candidate in enumerate(candidates):
        progress("Building the starts", number, len(candidates))
        smallest = curve[-1]
        if candidate.path is not None:
            build = _once(pool, program, candidate, settings.modes, summary, settings.lto)
            grown = any(build.sizes[m].loadable > stock.sizes[m].loadable for m in settings.modes)
            if build.total < smallest.total and not grown:
                best, smallest = candidate, Point(0.0, build.total, build.text)
        curve.append(replace(smallest, compiles=number + 1.0))
    progress("Building the starts", len(candidates), len(candidates))
    return best, tuple(curve)


def _bytes(sizes: Measure) -> tuple[float, float]:
    return float(sizes.loadable), float(sizes.text)


def _effective(build: Build, policy: PolicyFile) -> Overrides:
    """Return the overrides of ``build`` without those that change no answer."""
    needed: set[Key] = set()
    for trajectory in build.trajectories.values():
        records = trajectory.records[trajectory.records["overridden"] > 0]
        logits, default = records["logit"] > 0, records["inlining_default"] > 0
        own = default
        if policy.policy is not None:
            answers = policy.policy.metadata.answers
            own = logits if answers == "decision" else logits != default
        changed = records[own != (records["answer"] > 0)]
        needed |= {Key("site", n) for n in changed["site"].view("<u8").tolist()}
        needed |= {Key("callee", n) for n in changed["callee"].view("<u8").tolist()}
        # A site's line may say what the policy says and stand against its callee's.
        against = records["site"].view("<u8").tolist()
        needed |= {Key("site", n) for n in against}
    return {key: answer for key, answer in build.overrides.items() if key in needed}


def _comments(pool: Pool, build: Build) -> dict[Key, str]:
    """Return what each override is about, in the names of the source."""
    comments: dict[Key, str] = {}
    names: dict[int, str] = {}
    for trajectory in build.trajectories.values():
        names |= trajectory.names
    readable = demangle(pool.plugin.toolchain, names.values())

    def name(number: int) -> str:
        mangled = names.get(number, "?")
        return readable.get(mangled, mangled)

    for trajectory in build.trajectories.values():
        records = trajectory.records[trajectory.records["overridden"] > 0]
        columns = (records[tensor].view("<u8").tolist() for tensor in ("site", "caller", "callee"))
        for site, caller, callee in zip(*columns, strict=True):
            comments[Key("callee", callee)] = name(callee)
            comments[Key("site", site)] = f"{name(callee)} in {name(caller)}"
    return {key: text for key, text in comments.items() if key in build.overrides}


def _identity(
    pool: Pool,
    program: Program,
    policy: PolicyFile,
    settings: TuneSettings,
    budget: SearchSettings,
    seed: int,
    told: str | None,
) -> dict[str, Any]:
    """Return what a search depends on; the number of compiles may be raised later."""
    return {
        "corpus": pool.corpus.digest,
        "program": program.name,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
        "policy": policy.digest,
        "summary": None if told is None else hashlib.sha256(told.encode()).hexdigest(),
        "settings": json.loads(json.dumps(asdict(settings))),
        "search": {k: v for k, v in asdict(budget).items() if k != "compiles"},
        "seed": seed,
    }


def _save(path: Path, identity: Mapping[str, Any], chosen: PolicyFile, state: State) -> None:
    content = {
        "identity": identity,
        "start": str(chosen.path or chosen.name),
        "step": state.step,
        "overrides": to_text(state.overrides),
        "tried": {str(key): count for key, count in sorted(state.tried.items())},
        "curve": [asdict(point) for point in state.curve],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    partial.replace(path)


def _load(path: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        known = content["identity"]
    except (ValueError, KeyError, TypeError) as error:
        raise NestorError(
            f"{path} is no kept search ({error}): remove it, or take another --out."
        ) from None
    if known != identity:
        raise NestorError(
            f"{path.parent} holds the search of another program, policy, compiler or seed: take"
            " another --out, or remove it."
        )
    return content


def _state(content: Mapping[str, Any]) -> State:
    def key(text: str) -> Key:
        ((found, _),) = parse(f"nestor-overrides 1\n{text} keep").items()
        return found

    return State(
        step=int(content["step"]),
        overrides=parse(content["overrides"]),
        tried={key(text): int(count) for text, count in content["tried"].items()},
        curve=tuple(Point(**point) for point in content["curve"]),
    )
