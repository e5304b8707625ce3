"""Run a program that ends when this process is asked to."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Final

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP)
"""An interrupt is not: a terminal sends it to the program too."""


def run_to_end(
    words: Sequence[str], environment: Mapping[str, str], output: int | None = None
) -> int:
    """Run a program to its end and return its exit status, 128 + N after signal N.

    A request to terminate is passed on to the program. Once that has ended, it counts for this
    process too, whatever the program has made of it.

    :param words: the program's path, and its arguments.
    :param output: the file descriptor that its standard output goes to, if not to ours.
    :raises OSError: if it cannot be started.
    """
    received: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if child is not None:
            child.send_signal(number)

    with _handled(pass_on):
        # A makefile that runs 'nestor make' hands its job server on by open files.
        child = subprocess.Popen(words, env=environment, stdout=output, close_fds=False)
        for number in received:  # what came while it was started
            child.send_signal(number)
        status = _ended(child)
    if received:
        signal.raise_signal(received[0])
    return status if status >= 0 else 128 - status


def _ended(child: "subprocess.Popen[bytes]") -> int:
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it got the signal too, and its status says
            return child.wait()  # what it made of it


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let ``handler`` have the signals, except those that are ignored, as under nohup."""
    before = {number: signal.getsignal(number) for number in _PASSED_ON}
    taken = [number for number, old in before.items() if old is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
