"""``nestor schedule train``: a policy that guesses choices, from a database of results."""

from dataclasses import dataclass
from pathlib import Path

from nestor.cli.console import print_json, print_line
from nestor.cli.options import OutputFile
from nestor.cli.schedule.common import database_at


@dataclass(frozen=True)
class Train:
    """Train a policy on the results of earlier searches, for ``nestor schedule tune --policy``.

    Examples:
        nestor schedule train --out kernels.safetensors
        nestor schedule train --database elsewhere.sqlite --out elsewhere.safetensors
    """

    out: OutputFile
    """Where to write the policy."""
    database: Path | None = None
    """The file of results (default: schedules.sqlite in the cache)."""
    seed: int = 0
    """Of the training."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Train, write and print; errors are raised."""
        from nestor.policy import bundle
        from nestor.schedules.tune.policy import train

        policy = train(database_at(self.database, writes=False).all(), self.seed)
        bundle.save(policy, self.out)
        provenance = policy.metadata.provenance
        if self.json:
            print_json({"out": str(self.out), "provenance": dict(provenance)})
        else:
            print_line(
                f"{self.out}: learned from {provenance['results']} results of"
                f" {provenance['payloads']} payloads"
            )
        return 0
