"""How a command ends: its exit status, and at most one sentence on standard error.

A problem that the user can mend is a sentence and status 1. So is an error of the operating system
that names a file: a full disk, a folder of another user. An interrupt and a request to terminate
unwind the command, so that compilers and temporary folders go with it. Everything else is a bug and
keeps its traceback.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

_FAILURE: Final = 1
_READER_GONE: Final = 141
"""What a shell reports of a process that wrote to a pipe without a reader."""

_SAID: Final = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated",
}
_REMEDIES: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EACCES: "change its permissions",
    errno.EPERM: "change its permissions",
    errno.EROFS: "name a place that can be written",
    errno.ENOTDIR: "move away the file that is in place of a folder",
    errno.EEXIST: "move away what is there",
    errno.EISDIR: "name a file",
}
_OF_THE_MACHINE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors that are no bug although they name no file."""


class _Signals:
    """The signals that unwind a command."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        """The first of them, once it has come."""

    def install(self) -> None:
        """Turn each into an exception, but leave alone one that is ignored, as under nohup."""
        for number in _SAID:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._receive)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number)
        self.uninstall()  # a second one ends the process at once
        # Threads may wait for what was started, so that ends first.
        orphans = sys.modules.get("nestor.compiler.orphans")
        if orphans is not None:
            orphans.kill_marked()
        raise KeyboardInterrupt

    def uninstall(self) -> None:
        """Let each end the process at once, without a traceback."""
        for number in _SAID:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)


def unwound(command: Callable[[], int], resumes: bool) -> int:
    """Run ``command`` and return its exit status; on a signal, let it clean up and return 128 + N.

    :param resumes: whether the same command goes on from what an interrupted one has kept.
    """
    signals = _Signals()
    signals.install()
    try:
        return command()
    except BaseException:
        # Libraries turn an interrupt into errors of their own, above all while they are imported:
        # after a signal, whatever is raised comes of it.
        if signals.received is None:
            raise
        kept = "; the same command goes on from here" if resumes else ""
        sys.stderr.write(f"nestor: {_SAID[signals.received]}{kept}\n")
        _forget_interrupt()
        return 128 + signals.received
    finally:
        signals.uninstall()


def _forget_interrupt() -> None:
    """Let the interpreter end by the status that it is told.

    ``python -m`` ends by SIGINT when an interrupt has left a string that was being executed, as
    ``dataclasses`` does for each class, even if it was caught further out. The next string that
    runs to its end resets that (``run_eval_code_obj`` of CPython).
    """
    eval("None")  # noqa: S307  a literal


def explained(command: Callable[[], int]) -> int:
    """Run ``command`` and return its exit status; 1 after the sentence that says what is wrong."""
    from nestor.errors import NestorError

    try:
        return command()
    except NestorError as error:
        _say(str(error))
    except OSError as error:
        sentence = explain(error)
        if sentence is None:
            raise
        _say(sentence)
    return _FAILURE


def flushed(command: Callable[[], int]) -> int:
    """Run ``command`` and return its exit status, when all that it printed has been written."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, head say, has seen enough
        _discard_output()
        return _READER_GONE
    except OSError:
        try:
            sys.stdout.flush()
        except OSError:  # it is the one that is full; the interpreter must not try again
            _discard_output()
        raise


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: OSError) -> str | None:
    """Return one sentence for an error that the user can mend; None if it is a bug."""
    what = (error.strerror or str(error)).lower()
    if not isinstance(error.filename, str | bytes | os.PathLike):
        machine = error.errno in _OF_THE_MACHINE
        return f"A file cannot be written or read: {what}." if machine else None
    path = Path(os.fsdecode(error.filename))
    remedies = [_REMEDIES[error.errno]] if error.errno in _REMEDIES else []
    if _in_way_of_cache(path) or (remedies and _in_cache(path)):
        remedies.append("name another folder for the cache by NESTOR_CACHE")
    return f"{path}: {what}{'; ' if remedies else ''}{', or '.join(remedies)}."


def _in_cache(path: Path) -> bool:
    from nestor.compiler.plugin import cache_folder

    return any(map(path.is_relative_to, (cache_folder(), cache_folder().resolve())))


def _in_way_of_cache(path: Path) -> bool:
    """Tell whether ``path`` is, or is above, a cache that cannot be made: in /proc nobody can."""
    from nestor.compiler.plugin import cache_folder

    folder = cache_folder()
    there = os.path.exists(folder)  # noqa: PTH110  False also where nobody may look
    return folder.is_relative_to(path) and not there


def _say(sentence: str) -> None:
    # Takes 0.1 s to import, and the compiler wrapper is a command, too.
    from rich.markup import escape

    from nestor.cli.console import stderr

    stderr.print(f"[bold red]nestor:[/] {escape(sentence)}", soft_wrap=True, highlight=False)
