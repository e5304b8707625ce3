"""The options with which the plugin is asked to decide about inlining."""

from __future__ import annotations  # 'nestor flags' starts without numpy, which policies take

from pathlib import Path
from typing import TYPE_CHECKING

from nestor.compiler.plugin import Plugin

if TYPE_CHECKING:
    from nestor.build.build import Job
    from nestor.policy.names import NamedPolicy
    from nestor.problem.rollout import Request, Store, Workplace


def plugin_flags(
    plugin: Plugin,
    policy: Path | str,
    *,
    log: Path | None = None,
    names: bool = False,
    overrides: Path | None = None,
    summary: Path | None = None,
    trials: Path | None = None,
    seed: int | None = None,
    by_callee: bool = False,
    temperature: float | None = None,
) -> list[str]:
    """Return the options for ``clang -cc1`` and ``opt``.

    :param policy: a policy file or ``default``.
    :param log: write the trajectory here, with the functions' ``names`` if wanted.
    :param summary: the file of the program's summary (``program_summary``).
    :param trials: the folder of what trials came to in earlier compiles; this one adds its own.
    :param seed: sample the actions with this seed; None takes the greedy ones.
    :param by_callee: when sampling, draw one number for all sites of a callee.
    """
    options = [f"-nestor-policy={policy}"]
    if log is not None:
        options.append(f"-nestor-log={log}")
        options += ["-nestor-log-names"] if names else []
    if overrides is not None:
        options.append(f"-nestor-overrides={overrides}")
    if summary is not None:
        options.append(f"-nestor-program={summary}")
    if trials is not None:
        options.append(f"-nestor-trials={trials}")
    if seed is not None:
        options.append(f"-nestor-seed={seed}")
    if by_callee:
        options.append("-nestor-seed-callees")
    if temperature is not None:
        options.append(f"-nestor-temperature={temperature!r}")
    return plugin.words(options)


def request_flags(request: Request, plugin: Plugin, files: Store, log: Path) -> list[str]:
    """Return the options for ``request``; none for the stock compiler.

    :param files: takes the contents that the options name.
    :param log: where the trajectory goes if the request wants one.
    """
    if request.policy is None:
        return []
    return plugin_flags(
        plugin,
        policy_argument(request.policy, files),
        log=log if request.log else None,
        names=request.names,
        overrides=_file(request.overrides, files),
        summary=_file(request.summary, files),
        seed=request.seed,
        by_callee=request.by_group,
        temperature=request.temperature,
    )


def lto_flags(job: Job, place: Workplace, logs: Path) -> list[str]:
    """Return the options for a job of :class:`nestor.build.lto.LtoBuild` that has a policy.

    :param logs: the folder for a log of each back end.
    """
    assert job.policy is not None
    return plugin_flags(
        place.plugin,
        policy_argument(job.policy, place.files),
        log=logs if job.log else None,
        names=job.log and job.names,
        overrides=_file(job.overrides, place.files),
        trials=job.trials,
    )


def policy_argument(policy: NamedPolicy, files: Store) -> Path | str:
    """Return what the plugin's option takes: a file with the policy, or ``default``."""
    return "default" if policy.policy is None else files.write(policy.data)


def _file(text: str | None, files: Store) -> Path | None:
    return None if text is None else files.write(text.encode())
