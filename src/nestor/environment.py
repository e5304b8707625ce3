"""Inlining for size as a Gymnasium environment: an episode is one live compile of one module.

The compiler is the stock one; it asks over LLVM's interactive channel and waits for each action.
No plugin is involved. A round trip per decision is slow beside the plugin, so Nestor's own
training does not go this way; the environment is for whoever brings a learner of their own, and
with the default's answers as actions it must reproduce the stock object.
"""

import contextlib
import functools
import hashlib
import math
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypedDict

import gymnasium
import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import Channel, Tensor
from nestor.compiler.identity import probe_folder
from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import ObjectError, measure
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import INSTALL_HINT, Toolchain, ToolchainError, capabilities, find
from nestor.corpus import store
from nestor.corpus.model import Corpus, CorpusError, Module, Split
from nestor.errors import NestorError
from nestor.problems.inlining_size import INLINING_SIZE

Observation = npt.NDArray[np.float64]

PROBE: Final = "probe.cpp"
"""The built-in module that is compiled where no corpus is given."""


class Info(TypedDict, total=False):
    """What ``reset`` and ``step`` say besides observation and reward."""

    module: str
    """The module that is compiled."""
    default: int
    """The default heuristic's answer to the question that is open, 0 or 1."""
    decisions: int
    """How many questions were answered so far."""
    skipped: dict[str, str]
    """``reset`` only, when there are any: modules that were drawn and cannot be played, and why."""
    stock: int
    """Loadable bytes of the stock object; at the end of an episode."""
    loadable: int
    """Loadable bytes of the object; at the end, if the compile succeeded."""
    digest: str
    """SHA-256 of the object; at the end, if the compile succeeded."""
    stock_digest: str
    """SHA-256 of the stock object; at the end."""
    failure: str
    """Why there is no object, in one line; then the episode is truncated."""


@dataclass(frozen=True)
class _Object:
    loadable: int
    digest: str


@dataclass(frozen=True)
class _Unit:
    """Something to compile; ``module`` is None for the built-in module."""

    name: str
    module: Module | None

    def command(self, toolchain: Toolchain, corpus: Corpus | None, out: Path) -> list[str]:
        if self.module is None or corpus is None:
            return [str(toolchain.clang), *_probe_words(), "-o", str(out)]
        return compile_command(toolchain, self.module.options, corpus.bitcode(self.module), out)


class _UnplayableError(NestorError):
    """A module that no episode can be made of."""


class InliningForSize(gymnasium.Env[Observation, np.int64]):
    """Answer the inliner's questions; the reward is what the object has shrunk by.

    Observation: f64 ``[features]``, the values of the question's features as the compiler sends
    them, the default heuristic's answer among them; :attr:`features` holds their names. They are
    raw counts of very different sizes: squash and normalise them. After the last question all
    are 0.

    Action: 1 inlines the call, 0 does not.

    Reward: 0 until the compiler is done, then ``−100 · (loadable − stock) / stock``, per cent of
    the object's loadable bytes (text, rodata and unwind tables). A compile that fails or runs out
    of time truncates the episode with reward 0, and ``info["failure"]`` says why. Other keys of
    the info: :class:`Info`.

    An environment holds at most one compiler, and :meth:`close` ends it. Not for several threads.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium's own declaration

    def __init__(
        self,
        corpus: str | os.PathLike[str] | None = None,
        module: str | None = None,
        split: Split | Literal["all"] | None = None,
        llvm: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Find the compiler, ask it for its features and open the corpus.

        :param corpus: the folder of a corpus; without one the built-in C++ module is compiled.
        :param module: compile this module in every episode.
        :param split: draw a module of these projects for every episode (default: ``train``).
        :param llvm: a prefix, a bin folder or a clang; the best of the machine without.
        :param timeout: seconds that one compile may take; the agent's own time does not count.
        :raises NestorError: if there is no such module or no usable compiler.
        """
        if not (timeout > 0 and math.isfinite(timeout)):
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout}")
        self._toolchain = find(llvm)
        self._timeout = timeout
        self._corpus, self._units = _units(corpus, module, split)
        self._stock: dict[str, _Object] = {}
        self._silent: set[str] = set()
        tensors = _announced(self._toolchain)
        self.features: tuple[str, ...] = tuple(tensor.name for tensor in tensors)
        """Names of the observation's entries."""
        limits = np.array([_limit(tensor.dtype) for tensor in tensors])
        self.observation_space = gymnasium.spaces.Box(-limits, limits, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(INLINING_SIZE.actions)
        self._open = contextlib.ExitStack()  # what the running episode holds
        self._finalizer = self._on_exit()
        self._channel: Channel | None = None
        self._unit = self._units[0]
        self._out = Path()
        self._decisions = 0

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
                row = self._start(unit)
            except _UnplayableError as error:
                skipped[unit.name] = str(error)
                continue
            info = self._info(row)
            if skipped:
                info["skipped"] = skipped
            return self._observation(row), dict(info)
        name, reason = next(iter(skipped.items()))
        others = f", and so with {len(skipped) - 1} others" if len(skipped) > 1 else ""
        raise CorpusError(
            f"There is nothing to decide in {name}: {reason}{others}; take another module, split "
            "or corpus."
        )

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer the question and return the next one.

        Whatever the compiler does is a result. Only misuse raises: an answer without a question,
        or one that is neither 0 nor 1.
        """
        if self._channel is None:
            raise gymnasium.error.ResetNeeded("There is no open question: call reset() first.")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(f"An action is 0 or 1, not {action!r}.")
        try:
            self._channel.answer(int(action))
            self._decisions += 1
            row = self._channel.observe()
            if row is not None:
                return self._observation(row), 0.0, False, False, dict(self._info(row))
            made = _measured(self._out)
        except (NestorError, OSError) as error:
            return self._end(None, _line(error))
        return self._end(made, None)

    def close(self) -> None:
        """End the compiler and remove its files; may be called again."""
        self._channel = None
        self._open.close()

    def _named(self, name: str) -> _Unit:
        if self._corpus is None:
            if name == PROBE:
                return self._units[0]
            raise CorpusError(f"There is no module {name} without a corpus: give corpus=DIR.")
        return _Unit(name, self._corpus.module(name))

    def _in_random_order(self, units: Sequence[_Unit]) -> Iterator[_Unit]:
        """Yield ``units`` in an order that depends on the seed and on nothing that happened."""
        if len(units) == 1:
            return iter(units)
        return (units[index] for index in self.np_random.permutation(len(units)))

    def _start(self, unit: _Unit) -> npt.NDArray[Any]:
        """Begin a compile and return its first question.

        :raises _UnplayableError: if there is none, or ``unit`` does not compile as it is.
        """
        self.close()
        if unit.name in self._silent:
            raise _UnplayableError("the inliner asks nothing")
        try:
            self._unit, self._decisions = unit, 0
            self._out = Path(self._folder()) / "module.o"
            self._stock_of(unit)
            command = unit.command(self._toolchain, self._corpus, self._out)
            channel = self._open.enter_context(Channel(command, Limits(self._timeout)))
            row = channel.observe()
            if row is None:
                self._silent.add(unit.name)
                raise _UnplayableError("the inliner asks nothing")
            if tuple(tensor.name for tensor in channel.features) != self.features:
                raise _UnplayableError("the compiler asks with other features than before")
        except _UnplayableError:
            self.close()
            raise
        except (NestorError, OSError) as error:
            self.close()
            raise _UnplayableError(_line(error)) from None
        self._channel = channel
        self._finalizer.detach()
        self._finalizer = self._on_exit()
        return row

    def _on_exit(self) -> "weakref.finalize[..., Self]":
        """See to it that nothing is left when nobody calls :meth:`close`.

        The last that was asked for comes first when Python ends, so ask again once there is
        something that would clean itself up with a warning.
        """
        return weakref.finalize(self, _close, self._open, os.getpid())

    def _folder(self) -> str:
        return self._open.enter_context(
            tempfile.TemporaryDirectory(prefix="nestor-episode-", ignore_cleanup_errors=True)
        )

    def _stock_of(self, unit: _Unit) -> _Object:
        """Return the object of ``unit`` without anybody's advice, compiling it the first time.

        :raises _UnplayableError: if it cannot be made or has nothing to compare with.
        """
        if unit.name not in self._stock:
            out = self._out.with_name("stock.o")
            command = unit.command(self._toolchain, self._corpus, out)
            outcome = run(command, Limits(self._timeout))
            if not outcome.ok:
                raise _UnplayableError(outcome.reason)
            stock = _measured(out)
            if not stock.loadable:
                raise _UnplayableError("its stock object is empty")
            self._stock[unit.name] = stock
        return self._stock[unit.name]

    def _observation(self, row: npt.NDArray[Any]) -> Observation:
        return np.array([row[name][0] for name in self.features], dtype=np.float64)

    def _info(self, row: npt.NDArray[Any] | None) -> Info:
        info = Info(module=self._unit.name, decisions=self._decisions)
        if row is not None:
            info["default"] = int(row[INLINING_SIZE.default_tensor][0])
        return info

    def _end(
        self, made: _Object | None, failure: str | None
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        stock = self._stock[self._unit.name]
        info = self._info(None)
        info["stock"], info["stock_digest"] = stock.loadable, stock.digest
        reward = 0.0
        if made is not None:
            info["loadable"], info["digest"] = made.loadable, made.digest
            reward = 100 * (stock.loadable - made.loadable) / stock.loadable
        if failure is not None:
            info["failure"] = failure
        self.close()
        nothing = np.zeros(len(self.features))
        return nothing, reward, failure is None, failure is not None, dict(info)


def _close(stack: contextlib.ExitStack, owner: int) -> None:
    """Release what an environment held that nobody closed; not in a fork of its process."""
    if os.getpid() == owner:
        stack.close()


def _units(
    folder: str | os.PathLike[str] | None, module: str | None, split: Split | Literal["all"] | None
) -> tuple[Corpus | None, tuple[_Unit, ...]]:
    """Return the corpus and what episodes are made of."""
    if folder is None:
        if module is not None or split is not None:
            raise CorpusError("A module or a split is one of a corpus: give corpus=DIR.")
        return None, (_Unit(PROBE, None),)
    if module is not None and split is not None:
        raise CorpusError("Give a module or a split, not both.")
    corpus = store.load(Path(folder))
    if module is not None:
        return corpus, (_Unit(module, corpus.module(module)),)
    modules = corpus.modules if split == "all" else corpus.modules_of(split or "train")
    if not modules:
        raise CorpusError(
            f"The corpus {corpus.root} has no modules in the split {split or 'train'}; take "
            "another split."
        )
    return corpus, tuple(_Unit(module.name, module) for module in modules)


def _probe_words() -> tuple[str, ...]:
    return (INLINING_SIZE.capture_level, "-c", str(probe_folder() / PROBE))


@functools.cache
def _announced(toolchain: Toolchain) -> tuple[Tensor, ...]:
    """Ask the compiler for the features that it asks with.

    :raises ToolchainError: if it has no channel, or features that are not single numbers.
    """
    if not capabilities(toolchain).inliner_channel:
        raise ToolchainError(
            f"LLVM {toolchain.version} in {toolchain.prefix} cannot ask about inlining: "
            f"{INSTALL_HINT}."
        )
    with tempfile.TemporaryDirectory(prefix="nestor-probe-") as folder:
        out = Path(folder) / "probe.o"
        with Channel([toolchain.clang, *_probe_words(), "-o", out]) as channel:
            if channel.observe() is None:
                raise ToolchainError(f"LLVM {toolchain.version} asks nothing: {INSTALL_HINT}.")
            tensors = channel.features
    names = [tensor.name for tensor in tensors]
    if any(tensor.shape != (1,) for tensor in tensors) or INLINING_SIZE.default_tensor not in names:
        raise ToolchainError(
            f"LLVM {toolchain.version} asks about inlining in a way that is not known here: "
            f"{INSTALL_HINT}."
        )
    return tensors


def _limit(dtype: str) -> float:
    """Return what no value of an element type exceeds in size, by LLVM's name for the type."""
    if dtype.startswith("int"):
        return 2.0 ** (int(dtype.removeprefix("int").removesuffix("_t")) - 1)
    return float(np.finfo(np.float64 if dtype == "double" else np.float32).max)


def _measured(path: Path) -> _Object:
    """Measure an object.

    :raises NestorError: if there is none.
    """
    if not path.exists():
        raise ObjectError("the compiler left no object")
    return _Object(measure(path).loadable, hashlib.sha256(path.read_bytes()).hexdigest())


def _line(error: Exception) -> str:
    """Return an error's text as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
