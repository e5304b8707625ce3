"""What a decision problem is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A decision that a compiler takes by a heuristic and that a policy may take instead.

    The features are not part of it: they are read from the compiler that is asked.
    """

    name: str
    """The name in policy files and on the command line."""
    actions: int
    """Answers are the integers below this."""
    default_tensor: str
    """The tensor that holds the default heuristic's answer."""
    decision_tensor: str
    """The tensor that holds the answer."""
    capture_level: str
    """The optimisation level at which modules for this problem are made."""
    score: str
    """What a compile costs, in one phrase with its unit; lower is better."""
