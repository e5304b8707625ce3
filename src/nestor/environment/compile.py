"""One compile as an episode of a Gymnasium environment."""

import contextlib
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypedDict

import gymnasium
import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import Channel
from nestor.compiler.objects import ObjectError
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import find
from nestor.corpus.model import CorpusError, Split
from nestor.environment.units import PROBE, Unit, announced, units
from nestor.errors import NestorError
from nestor.files import sha256_of
from nestor.numbers import refuse_number
from nestor.problem.live import Live, LiveQuestion
from nestor.temporary import temporary_folder

Observation = npt.NDArray[np.float64]
Environment = gymnasium.Env[Observation, np.int64]


class Info(TypedDict, total=False):
    """What ``reset`` and ``step`` say besides observation and reward.

    At the end of an episode there is also what the object came to, by the problem's names.
    """

    module: str
    """The module that is compiled."""
    default: int
    """The default heuristic's action for the question that is open."""
    action_mask: npt.NDArray[np.int8]
    """1 for each action that may be chosen for it, ``[actions]``; absent where all may."""
    decisions: int
    """How many questions were answered so far."""
    replaced: int
    """How many actions so far could not be chosen, so that the default's was taken instead; absent
    where every action can."""
    skipped: dict[str, str]
    """``reset`` only, when there are any: modules that were drawn and cannot be played, and why."""
    stock: float
    """The score of the stock object; at the end of an episode."""
    digest: str
    """SHA-256 of the object; at the end, if the compile succeeded."""
    stock_digest: str
    """SHA-256 of the stock object; at the end."""
    failure: str
    """Why there is no object, in one line; then the episode is truncated."""


@dataclass(frozen=True)
class _Object:
    measured: Mapping[str, float]
    digest: str


class _UnplayableError(NestorError):
    """A module that no episode can be made of."""


class CompileEnvironment(Environment):
    """Answer a compiler's questions; the reward is what the score has fallen by.

    Observation: f64, the question's features, raw and of very different sizes: squash and
    normalise them. :attr:`features` holds the names of its entries, or of its columns where a
    question has several candidates. After the last question all are 0.

    Action: a number that the compiler is sent. ``info["action_mask"]`` says which may be chosen;
    for any other the default's action is taken, and ``info["replaced"]`` counts them.

    Reward: 0 until the compiler is done, then ``−100 · (score − stock) / stock``, per cent of the
    stock object's score. A compile that fails or runs out of time truncates the episode with
    reward 0, and ``info["failure"]`` says why. Other keys of the info: :class:`Info`.

    An environment holds at most one compiler, and :meth:`close` ends it. Not for several threads.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium's own declaration

    def __init__(
        self,
        live: Live,
        corpus: str | os.PathLike[str] | None = None,
        module: str | None = None,
        split: Split | Literal["all"] | None = None,
        llvm: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Find the compiler, ask it for its features and open the corpus.

        :param live: how the problem is asked.
        :param corpus: the folder of a corpus; without one the built-in C++ module is compiled.
        :param module: compile this module in every episode.
        :param split: draw a module of these projects for every episode (default: ``train``).
        :param llvm: a prefix, a bin folder or a clang; the best of the machine without.
        :param timeout: seconds that one compile may take; the agent's own time does not count.
        :raises NestorError: if there is no such module, no usable compiler or no such timeout.
        """
        refuse_number("timeout", timeout)
        self._live = live
        self._toolchain = find(llvm)
        self._timeout = timeout
        self._corpus, self._units = units(corpus, module, split)
        self._stock: dict[str, _Object] = {}
        self._silent: set[str] = set()
        self._tensors = announced(live, self._toolchain)
        self._questions = live.questions(self._tensors)
        self.features: tuple[str, ...] = self._questions.features
        """Names of the observation's entries, or of its columns."""
        self.observation_space: gymnasium.spaces.Box = self._questions.observation_space  # type: ignore[assignment]
        self.action_space = self._questions.action_space
        self._open = contextlib.ExitStack()  # what the running episode holds
        self._finalizer = self._on_exit()
        self._channel: Channel | None = None
        self._question: LiveQuestion | None = None
        self._unit = self._units[0]
        self._out = Path()
        self._decisions = self._replaced = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a compile and return its first question; a running one is ended.

        A module drawn from a split that asks nothing or does not compile is passed over, and
        named in ``info["skipped"]``.

        :param options: ``{"module": NAME}`` compiles this module of the corpus this time.
        :raises NestorError: if no module can be played.
        """
        super().reset(seed=seed)
        units = self._units
        if options and "module" in options:
            units = (self._named(options["module"]),)
        skipped: dict[str, str] = {}
        for unit in self._in_random_order(units):
            try:
                question = self._start(unit)
            except _UnplayableError as error:
                skipped[unit.name] = str(error)
                continue
            info = self._info(question)
            if skipped:
                info["skipped"] = skipped
            return question.observation, dict(info)
        name, reason = next(iter(skipped.items()))
        others = f", and so with {len(skipped) - 1} others" if len(skipped) > 1 else ""
        raise CorpusError(
            f"There is nothing to decide in {name}: {reason}{others}; take another module, split "
            "or corpus."
        )

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer the question and return the next one.

        Whatever the compiler does is a result. Only misuse raises: an answer without a question,
        or one outside of the action space.
        """
        if self._channel is None or self._question is None:
            raise gymnasium.error.ResetNeeded("There is no open question: call reset() first.")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"An action is one of {self.action_space}, not {action!r}."
            )
        try:
            self._channel.answer(self._taken(int(action)))
            self._decisions += 1
            self._question = self._next_question(self._channel)
            if self._question is not None:
                info = dict(self._info(self._question))
                return self._question.observation, 0.0, False, False, info
            built = self._measured(self._out)
        except (NestorError, OSError) as error:
            return self._end(None, _line(error))
        return self._end(built, None)

    def close(self) -> None:
        """End the compiler and remove its files; may be called again."""
        self._channel = self._question = None
        self._open.close()

    def _named(self, name: str) -> Unit:
        if self._corpus is None:
            if name == PROBE:
                return self._units[0]
            raise CorpusError(f"There is no module {name} without a corpus: give corpus=DIR.")
        return Unit(name, self._corpus.module(name))

    def _in_random_order(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yield ``units`` in an order that depends on the seed and on nothing that happened."""
        if len(units) == 1:
            return iter(units)
        return (units[index] for index in self.np_random.permutation(len(units)))

    def _start(self, unit: Unit) -> LiveQuestion:
        """Begin a compile and return its first question.

        :raises _UnplayableError: if there is none, or ``unit`` does not compile as it is.
        """
        self.close()
        if unit.name in self._silent:
            raise _UnplayableError("the compiler asks nothing")
        try:
            self._unit, self._decisions, self._replaced = unit, 0, 0
            self._out = Path(self._folder()) / "module.o"
            self._stock_of(unit)
            command = unit.command(self._live, self._toolchain, self._corpus, self._out)
            limits = Limits(self._timeout)
            channel = self._open.enter_context(Channel(command, self._live.options, limits))
            question = self._next_question(channel)
            if question is None:
                self._silent.add(unit.name)
                raise _UnplayableError("the compiler asks nothing")
            if channel.features != self._tensors:
                raise _UnplayableError("the compiler asks with other features than before")
        except _UnplayableError:
            self.close()
            raise
        except (NestorError, OSError) as error:
            self.close()
            raise _UnplayableError(_line(error)) from None
        self._channel, self._question = channel, question
        self._finalizer.detach()
        self._finalizer = self._on_exit()
        return question

    def _next_question(self, channel: Channel) -> LiveQuestion | None:
        tensors = channel.observe()
        return None if tensors is None else self._questions.question(tensors)

    def _taken(self, action: int) -> int:
        """Return ``action``, or the default's where it may not be chosen."""
        assert self._question is not None
        if self._question.allowed is None or self._question.allowed[action]:
            return action
        self._replaced += 1
        return self._question.default

    def _on_exit(self) -> "weakref.finalize[..., Self]":
        """See to it that nothing is left when nobody calls :meth:`close`.

        The last that was asked for comes first when Python ends, so ask again once there is
        something that would clean itself up with a warning.
        """
        return weakref.finalize(self, _close, self._open, os.getpid())

    def _folder(self) -> str:
        return self._open.enter_context(temporary_folder("episode"))

    def _stock_of(self, unit: Unit) -> _Object:
        """Return the object of ``unit`` without anybody's advice, compiling it the first time.

        :raises _UnplayableError: if it cannot be made or has nothing to compare with.
        """
        if unit.name not in self._stock:
            out = self._out.with_name("stock.o")
            command = unit.command(self._live, self._toolchain, self._corpus, out)
            outcome = run(command, Limits(self._timeout))
            if not outcome.ok:
                raise _UnplayableError(outcome.reason)
            stock = self._measured(out)
            if not stock.measured[self._live.score]:
                raise _UnplayableError("its stock object is empty")
            self._stock[unit.name] = stock
        return self._stock[unit.name]

    def _measured(self, path: Path) -> _Object:
        """Measure an object.

        :raises NestorError: if there is none.
        """
        if not path.exists():
            raise ObjectError("the compiler left no object")
        digest = sha256_of(path)
        return _Object(self._live.measure(path), digest)

    def _info(self, question: LiveQuestion | None) -> Info:
        info = Info(module=self._unit.name, decisions=self._decisions)
        if question is not None:
            info["default"] = question.default
            if question.allowed is not None:
                info["action_mask"] = question.allowed.astype(np.int8)
                info["replaced"] = self._replaced
        return info

    def _end(
        self, built: _Object | None, failure: str | None
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        stock, score = self._stock[self._unit.name], self._live.score
        info = self._info(None)
        info["stock"], info["stock_digest"] = stock.measured[score], stock.digest
        if self._replaced:
            info["replaced"] = self._replaced
        reward = 0.0
        if built is not None:
            info["digest"] = built.digest
            reward = 100 * (stock.measured[score] - built.measured[score]) / stock.measured[score]
        if failure is not None:
            info["failure"] = failure
        measured = {} if built is None else built.measured
        self.close()
        nothing = np.zeros(self.observation_space.shape or ())
        return nothing, reward, failure is None, failure is not None, {**info, **measured}


def _close(stack: contextlib.ExitStack, owner: int) -> None:
    """Release what an environment held that nobody closed; not in a fork of its process."""
    if os.getpid() == owner:
        stack.close()


def _line(error: Exception) -> str:
    """Return an error's text as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
