"""``nestor policy``: what a policy file is."""

from dataclasses import dataclass

import tyro

from nestor.cli.console import print_json, print_line, stdout
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.errors import NestorError
from nestor.policy import bundle
from nestor.policy.linear import as_sum, as_sums
from nestor.policy.portfolio import PortfolioPolicy
from nestor.problem.registry import find_policy, problem_names
from nestor.rollout.cache import policy_path


@dataclass(frozen=True)
class Policy:
    """Describe a policy: its kind, its features and where it came from.

    Of a network without hidden layers the logit is shown: a sum in which l is a logarithm to the
    base of 2 (docs/reference/formats.md). What it means depends on the rule. threshold: above 0 the
    policy leaves the default, or gives the positive answer (inlining: inlines) if its answers are
    decisions. pick: the candidate with the largest sum is chosen. value: the sum is the answer.
    Of a portfolio there is a sum for each member.

    Examples:
        nestor policy shipped
        nestor policy shipped-eviction
        nestor policy runs/es/policy.safetensors
        nestor policy mlgo2020 --json
    """

    policy: tyro.conf.Positional[str]
    """A policy file or a built-in."""
    problem: str | None = None
    """The problem whose built-ins may be named (default: all problems')."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check the file and print what it says of itself."""
        problems = problem_names() if self.problem is None else (self.problem,)
        _, found = find_policy(self.policy, sorted(problems, key=DEFAULT_PROBLEM.__ne__))
        if found.policy is None:
            raise NestorError("'default' is the compiler's own heuristic and has no file.")
        facts = bundle.describe(found.policy) | {"path": str(policy_path(found))}
        if self.json:
            print_json(facts)
            return 0
        facts["logit"] = as_sum(found.policy)
        facts.pop("members", None)
        for name, value in facts.items():
            if value is None:
                continue
            shown = ", ".join(value) if isinstance(value, list | tuple) else value
            print_line(f"{name:12} {shown}")
        if isinstance(found.policy, PortfolioPolicy):
            stdout.print(f"{'members':12} {len(found.policy.members())}", soft_wrap=True)
            for number, logit in enumerate(as_sums(found.policy), 1):
                print_line(f"{f'member {number}':12} {logit}")
        return 0
