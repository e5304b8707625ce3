"""At which optimisation levels a problem's policies decide, and what was made at others."""

from collections.abc import Sequence

from nestor.corpus.model import Corpus, CorpusError
from nestor.policy.names import NamedPolicy
from nestor.problem.in_builds import like_at, problems_in_builds
from nestor.problem.problem import Problem, ProblemError


def decides(problem: Problem, corpus: Corpus) -> bool:
    """Tell whether policies of ``problem`` decide at the level of ``corpus``."""
    return corpus.level in problem.levels


def require_decided(
    problem: Problem, corpus: Corpus, policies: Sequence[NamedPolicy] | None = None
) -> None:
    """Refuse a corpus at whose level the policies of ``problem`` decide nothing.

    :param policies: those that are to decide; the default decides at every level, and so does a
        text of overrides. None stands for a policy that is still to be made.
    :raises CorpusError: with how to make a corpus at the right level.
    """
    if _is_asked(policies) and not decides(problem, corpus):
        raise CorpusError(
            f"The corpus {corpus.root} was captured at {corpus.level}, where policies for"
            f" {problem.name} decide nothing: fetch or capture another one with --level"
            f" {problem.levels[0]}{instead(problem, corpus.level)}."
        )


def require_decided_at(problem: Problem, level: str, policies: Sequence[NamedPolicy]) -> None:
    """Refuse to compile at a level at which ``policies`` would decide nothing.

    :raises ProblemError: with the levels at which they decide.
    """
    if _is_asked(policies) and level not in problem.levels:
        raise ProblemError(
            f"This compiles at {level}, where policies for {problem.name} decide nothing: they"
            f" decide at {' and '.join(problem.levels)} (--level){instead(problem, level)}."
        )


def _is_asked(policies: Sequence[NamedPolicy] | None) -> bool:
    return policies is None or any(each.policy is not None for each in policies)


def instead(problem: Problem, level: str) -> str:
    """Return which problem the same decisions are at ``level``, as the end of a sentence."""
    able = problems_in_builds(first=problem.name)
    own = able.get(problem.name)
    like = like_at(level, own, able) if own else None
    return f", or take --problem {like.problem}" if like else ""
