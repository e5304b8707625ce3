"""Talk to one of the stock compiler's learned advisors over LLVM's interactive channel.

The compiler opens two FIFOs, sends the tensors that it will send for each question, then a question
at a time, and waits for the raw bytes of an answer (llvm/Analysis/InteractiveModelRunner.h). No
plugin is involved, so the channel takes any Python policy and serves as the oracle for a plugin. It
costs a round trip per question.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from nestor.compiler.process import Ending, Limits, environment, messages, restrict
from nestor.compiler.training_log import DTYPES
from nestor.errors import NestorError
from nestor.temporary import temporary_folder

ChannelOptions = Callable[[Path], Sequence[str]]
"""From the path of a channel (two FIFOs, with the endings ``.in`` and ``.out``) to LLVM's options
that make one advisor ask there. Each problem has its own."""

_CANCEL_POLL_SECONDS: Final = 0.2


class ChannelError(NestorError):
    """The compiler ended, fell silent or spoke something else than the channel's protocol."""

    def __init__(self, message: str, ending: Ending = Ending.FAILED) -> None:
        """Say what happened.

        :param ending: how the compiler ended.
        """
        super().__init__(message)
        self.ending = ending


@dataclass(frozen=True)
class Tensor:
    """One tensor as the compiler announces it."""

    name: str
    dtype: str
    """LLVM's name of the element type, for example ``int64_t``."""
    shape: tuple[int, ...]

    @staticmethod
    def from_json(fields: dict[str, Any]) -> "Tensor":
        """Return the tensor that a line of the channel describes."""
        return Tensor(fields["name"], fields["type"], tuple(fields["shape"]))


class Channel:
    """One compile under the questions of the interactive channel.

    Use as a context manager: :meth:`observe` until it returns None, :meth:`answer` after each
    observation. Leaving early kills the compiler.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        options: ChannelOptions,
        limits: Limits | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        """Start ``command`` (without the channel's own options) within ``limits``.

        Only the compiler's time counts, not what passes between a question and its answer.

        :param options: which advisor asks.
        :param cancelled: once it is set, waiting for the compiler ends with an error.
        """
        limits = limits or Limits()
        self.features: tuple[Tensor, ...] = ()
        """What the compiler sends for each question; empty before the first."""
        self.advice: Tensor | None = None
        """What it takes as an answer; None before the first question."""
        self.context = ""
        """What the last question is about, such as a function's name; empty if nothing was said."""
        self.cpu_seconds = 0.0
        """User and system time of the compiler, once it has ended."""
        self._left = limits.seconds
        self._cancelled = cancelled
        self._buffer = bytearray()
        self._row: np.dtype[Any] | None = None
        self._reply = np.dtype(np.int64)
        self._folder = temporary_folder("channel")
        base = Path(self._folder.name) / "channel"
        for suffix in (".in", ".out"):
            os.mkfifo(f"{base}{suffix}")
        # Read and write both: neither open blocks, whatever the compiler does first. The end of
        # the compiler shows on its pidfd, since these FIFOs never reach end-of-file.
        self._write = os.open(f"{base}.in", os.O_RDWR)
        self._read = os.open(f"{base}.out", os.O_RDWR | os.O_NONBLOCK)
        self._errors = messages()  # closed by close()
        llvm = [word for option in options(base) for word in ("-mllvm", option)]
        self._process = subprocess.Popen(
            [*map(str, command), *llvm],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=environment(),
            start_new_session=True,
        )
        # When its reader has died, LLVM's channel reads end-of-file for ever.
        restrict(self._process.pid, limits)
        self._handle = os.pidfd_open(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the compiler if it still runs and free everything; may be called twice."""
        if self._handle < 0:
            return
        if self._process.returncode is None:  # else its number may be another's by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._wait()
        for descriptor in (self._handle, self._read, self._write):
            os.close(descriptor)
        self._handle = -1
        self._errors.close()
        self._folder.cleanup()

    def observe(self) -> npt.NDArray[Any] | None:
        """Return the next question's tensors (a structured scalar), or None at the end.

        :raises ChannelError: if the compiler failed, fell silent or broke the protocol.
        """
        while True:
            text = self._take_line()
            if text is None:
                self._finish()
                return None
            try:
                line = json.loads(text)
                if "features" in line:
                    self._declare(line)
                elif "context" in line:
                    self.context = str(line["context"])
                elif "observation" in line:
                    return self._take_observation()
            except (ValueError, KeyError, TypeError) as error:
                raise ChannelError(f"The compiler broke the channel's protocol: {error}.") from None

    def answer(self, answer: float) -> None:
        """Answer the last question, in the type that the compiler has announced."""
        os.write(self._write, self._reply.type(answer).tobytes())

    def _declare(self, header: dict[str, Any]) -> None:
        self.features = tuple(Tensor.from_json(fields) for fields in header["features"])
        self.advice = Tensor.from_json(header["advice"])
        self._row = np.dtype([(t.name, DTYPES[t.dtype], t.shape) for t in self.features])
        self._reply = np.dtype(DTYPES[self.advice.dtype])

    def _take_observation(self) -> npt.NDArray[Any]:
        if self._row is None:
            raise ValueError("an observation came before the features")
        size = self._row.itemsize
        while len(self._buffer) <= size:  # the tensors and a newline
            if not self._receive():
                raise ValueError("the compiler ended within an observation")
        row = np.frombuffer(bytes(self._buffer[:size]), dtype=self._row)[0]
        del self._buffer[: size + 1]
        return row  # type: ignore[no-any-return]

    def _take_line(self) -> bytes | None:
        while (end := self._buffer.find(b"\n")) < 0:
            if not self._receive():
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _receive(self) -> bool:
        """Read what has come; wait for more. False when the compiler has ended."""
        waiter = select.poll()
        waiter.register(self._read, select.POLLIN)
        waiter.register(self._handle, select.POLLIN)
        while True:
            if self._cancelled is not None and self._cancelled.is_set():
                self.close()
                raise ChannelError("The compile was cancelled.", Ending.CANCELLED)
            wait = max(0.0, self._left)
            if self._cancelled is not None:
                wait = min(wait, _CANCEL_POLL_SECONDS)
            start = time.monotonic()
            ready = dict(waiter.poll(wait * 1000))
            self._left -= time.monotonic() - start
            if self._read in ready:
                self._buffer += os.read(self._read, 1 << 16)
                return True
            if ready:
                return False
            if self._left <= 0:
                self.close()
                raise ChannelError(
                    "The compiler did not speak on the channel in time.", Ending.TIMEOUT
                )

    def _finish(self) -> None:
        returncode = self._wait()
        if returncode != 0:
            self._errors.seek(0)
            text = self._errors.read(2048).decode(errors="replace").strip()
            ending = Ending.CRASHED if returncode < 0 else Ending.FAILED
            raise ChannelError(f"The compiler failed with status {returncode}: {text}", ending)

    def _wait(self) -> int:
        """Wait for the compiler's end and return its status; may be called twice."""
        if self._process.returncode is None:
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self._process.returncode


def compile_over_channel(
    command: Sequence[str | Path],
    answer: Callable[[npt.NDArray[Any]], float],
    options: ChannelOptions,
    limits: Limits | None = None,
    cancelled: threading.Event | None = None,
) -> int:
    """Run one compile, answering every question by ``answer``; return how many there were."""
    count = 0
    with Channel(command, options, limits, cancelled) as channel:
        while (observation := channel.observe()) is not None:
            channel.answer(answer(observation))
            count += 1
    return count
