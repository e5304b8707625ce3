"""Why a run under the tool cannot be counted, and what to do about it."""

import signal
from typing import Final

from nestor.compiler.process import Ending, Outcome

_OF_VALGRIND: Final = "valgrind: "
"""What the lines begin with that say why valgrind did not run a program."""
_BY_SIGNAL: Final = {
    "SIGILL": "valgrind knows no AVX-512, so build it without",
    "SIGKILL": "see that nothing stops it, such as a lack of memory",
    "SIGXCPU": "give it more time (--seconds)",
}
_USUAL: Final = "see that it runs to its end without valgrind"


def failure(outcome: Outcome, has_counts: bool) -> str | None:
    """Return what became of a run, to follow the program's name; None if it can be counted.

    :param has_counts: whether the tool wrote its file, which it does unless it is killed.
    """
    if outcome.ending is Ending.TIMEOUT:
        return "did not end in time under valgrind; give it more time (--seconds) or less to do."
    if outcome.ending in (Ending.NOT_STARTED, Ending.CANCELLED):
        return f"was not started ({outcome.stderr}); start it in a folder that is there."
    if outcome.returncode < 0:
        number = -outcome.returncode
        name = next((one.name for one in signal.Signals if one == number), f"signal {number}")
        return f"was ended by {name} under valgrind; {_BY_SIGNAL.get(name, _USUAL)}."
    if has_counts:
        return None
    said = [line for line in outcome.stderr.splitlines() if line.startswith(_OF_VALGRIND)]
    if said:
        why = said[0].removeprefix(_OF_VALGRIND).rstrip(".")
        return f"could not be run by valgrind ({why:.200}); name an executable for x86-64."
    return "left no counts; name a program that does not become another (exec)."
