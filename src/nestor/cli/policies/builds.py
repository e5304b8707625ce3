"""The options that say how programs are built."""

from collections.abc import Sequence
from pathlib import Path

from nestor.build.build import Build, find_build, inside_lto, summary_for
from nestor.cli.lto_remarks import remark_on_lto
from nestor.compiler.invocation import LtoKind
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.in_builds import problems_in_builds
from nestor.problem.overrides import OverridesError, read_overrides
from nestor.problem.problem import Pool, Problem
from nestor.problem.registry import find_policy
from nestor.progress import Progress


def chosen_build(problem: Problem, name: str | None, lto: LtoKind | None = None) -> Build:
    """Return the build that a user means, the problem's usual one if none was named.

    :param lto: short for the name of a build by LTO.
    :raises BuildError: if the problem has no such build.
    """
    if lto is not None:
        if name is not None:
            raise NestorError("--lto names a build: leave --build out.")
        name = lto_build(lto)
    return find_build(problem, name)


def lto_build(kind: LtoKind) -> str:
    """Return the name of the build by LTO of a kind."""
    return f"{kind}-lto"


def remark_on_build(build: Build, policies: Sequence[str]) -> None:
    """Say so where a policy that a user names changes nothing in ``build``, or is not for it."""
    remark_on_lto(policies, lto=inside_lto(build))


def usual_summary(
    pool: Pool, program: Program, policy: NamedPolicy, report: Progress
) -> str | None:
    """Return the summary of a program that is built in its problem's usual way.

    None if the policy reads none.
    """
    build = find_build(pool.problem, None)
    return summary_for(pool, build, program, policy, build.modes[0], report)


def check_summary(build: Build, summary: bool) -> None:
    """Refuse summaries where the compiler sees the whole program.

    :raises NestorError: if they are wanted.
    """
    if build.whole and summary:
        raise NestorError("LTO sees the whole program: leave --summary out.")


def policies_beside(problem: Problem, names: Sequence[str]) -> tuple[NamedPolicy, ...]:
    """Return the policies about other decisions that a user wants in the same compiles.

    :raises NestorError: if the problem's compiles take none, or two are about one decision.
    """
    if names and not problem.together:
        raise NestorError(f"A compile for {problem.name} takes no policies about other decisions.")
    others = [name for name in problems_in_builds(first=problem.name) if name != problem.name]
    found: dict[str, NamedPolicy] = {}
    for name in names:
        if name != DEFAULT.name and name in problem.builtins.names:
            raise NestorError(
                f"The policy {name} decides {problem.name}, as those of --policy do: leave it out"
                " of --also."
            )
        about, policy = find_policy(name, others)
        if about in found or about not in others:
            raise NestorError(
                f"The policy {name} is for {about}: name at most one for each of"
                f" {', '.join(others)} beside those for {problem.name}."
            )
        found[about] = policy
    return tuple(found.values())


def overrides_text(problem: Problem, path: Path | None) -> str | None:
    """Return the text of a file of overrides, read once here instead of by every compile.

    :raises ReadError: if the file cannot be read.
    :raises OverridesError: if it holds none.
    """
    if path is None:
        return None
    text = read_overrides(path)
    try:
        problem.overrides().parse(text)
    except OverridesError as error:
        raise OverridesError(f"{path}: {error}") from None
    return text
