"""``nestor policy``: what a policy file is."""

from dataclasses import dataclass

import tyro

from nestor.cli.console import print_json, stdout
from nestor.errors import NestorError
from nestor.policy import bundle
from nestor.policy.linear import as_sum
from nestor.rollout.policy_file import policy_file


@dataclass(frozen=True)
class Policy:
    """Describe a policy: its kind, its features and where it came from.

    Of a network without hidden layers the logit is shown: a sum in which l is a logarithm to the
    base of 2 (docs/reference/formats.md). Above 0 the policy leaves the default, or inlines if its
    answers are decisions.

    Examples:
        nestor policy shipped
        nestor policy runs/es/policy.safetensors
        nestor policy mlgo2020 --json
    """

    policy: tyro.conf.Positional[str]
    """A policy file or a built-in."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check the file and print what it says of itself."""
        found = policy_file(self.policy)
        if found.policy is None:
            raise NestorError("'default' is the compiler's own heuristic and has no file.")
        facts = bundle.describe(found.policy) | {"path": str(found.path)}
        if self.json:
            print_json(facts)
            return 0
        facts["logit"] = as_sum(found.policy)
        for name, value in facts.items():
            if value is None:
                continue
            shown = ", ".join(value) if isinstance(value, list | tuple) else value
            stdout.print(f"{name:12} {shown}", soft_wrap=True, markup=False)
        return 0
