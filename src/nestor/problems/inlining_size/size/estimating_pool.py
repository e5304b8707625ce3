"""A pool whose rollouts end where code generation would begin, and are paid by predicted sizes.

A learner that samples compiles needs no code, only what it would have weighed. A function of which
nothing has changed weighs exactly what it weighs in the stock object; another one that plus the
predicted difference, so that what the model does not know of a function cancels out. A function
that the stock object lacks weighs what the model says.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import CLASSES, Function, Measure
from nestor.compiler.process import Ending, run
from nestor.compiler.releases import FUNCTION_LOG
from nestor.corpus.model import Module
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import LogError
from nestor.problems.inlining_size.compile import compile_module
from nestor.problems.inlining_size.log import read
from nestor.problems.inlining_size.plugin_flags import request_flags
from nestor.problems.inlining_size.size import function_log
from nestor.problems.inlining_size.size.examples import compile_logged
from nestor.problems.inlining_size.size.function_log import FunctionLog
from nestor.problems.inlining_size.size.model import SizeModel
from nestor.progress import Progress, silent
from nestor.rollout.layered import LayeredPool
from nestor.temporary import temporary_folder

PART_WITHOUT_CODE = 0.65
"""Of a compile's price, what one without code generation costs, as measured by
``benchmarks.size_estimator`` (docs/studies/size-estimator.md)."""

_WEAK = ("is_linkonce", "is_linkonce_odr")


@dataclass(frozen=True)
class Anchor:
    """What one module's functions weigh in the stock object, and what the model says of them."""

    sizes: Measure
    real: Mapping[str, Function]
    predicted: Mapping[str, float]

    def measure(self, log: FunctionLog, predicted: Mapping[str, float]) -> Measure:
        """Return the sizes of a compile of which ``predicted`` is what the model says.

        Of the sections, only the code's and the constants' are there; constants are stock's.
        """
        weak = dict.fromkeys(log.names, False)
        for column in (log.counts.index(name) for name in _WEAK if name in log.counts):
            for name, value in zip(log.names, log.values[:, column], strict=True):
                weak[name] |= bool(value)
        functions = []
        for name, guess in predicted.items():
            real = self.real.get(name)
            if real is None:
                functions.append(Function(name, max(1, round(guess)), weak[name]))
            else:
                size = max(1, round(real.size + guess - self.predicted.get(name, guess)))
                changed = replace(real, size=size, code=0)
                functions.append(real if size == real.size else changed)
        sections = dict.fromkeys(CLASSES, 0) | {
            ".text": sum(function.size for function in functions),
            ".rodata": self.sizes.sections[".rodata"],
        }
        return Measure(sections, tuple(functions))


class EstimatingPool(LayeredPool):
    """Estimates those rollouts that nobody wants the object of; the others are compiled."""

    def __init__(self, pool: Pool, model: SizeModel):
        """Work like ``pool``, with what ``model`` predicts.

        :raises ToolchainError: if this release of LLVM has no function log.
        """
        pool.plugin.toolchain.require(FUNCTION_LOG)
        super().__init__(pool)
        self.model = model
        self._anchors: dict[str, Anchor | None] = {}
        self._lock = threading.Lock()

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run all requests and return their rollouts in the order of the requests."""
        return self.map(self._one, requests, progress, stage)

    def anchor(self, module: Module) -> Anchor | None:
        """Return the stock sizes of ``module``, compiled once; None if that fails."""
        with self._lock:
            if module.name in self._anchors:
                return self._anchors[module.name]
        stock = compile_logged(Request(module, DEFAULT), self.below)
        anchor = None
        if stock is not None:
            real = {function.name: function for function in stock.sizes.functions}
            anchor = Anchor(stock.sizes, real, self.model.sizes(stock.log))
        with self._lock:
            return self._anchors.setdefault(module.name, anchor)

    def _one(self, request: Request) -> Rollout:
        anchor = None
        if not request.keep and request.policy is not None and request.policy.policy is not None:
            anchor = self.anchor(request.unit)
        try:
            if anchor is None:
                return compile_module(request, self.place)
            with temporary_folder("estimate") as text:
                return self._estimate(request, anchor, Path(text))
        except OSError as error:
            return Rollout.failed(request, f"{Ending.NOT_STARTED.value}: {error}")

    def _estimate(self, request: Request, anchor: Anchor, folder: Path) -> Rollout:
        log, functions = folder / "log", folder / "functions"
        command = compile_command(
            self.plugin.toolchain,
            request.unit.options,
            self.corpus.bitcode(request.unit),
            folder / "module.o",
            [
                *request_flags(request, self.plugin, self.place.files, log),
                *function_log.flags(functions, no_code=True),
            ],
        )
        process = run(command, self.limits, cancelled=self.place.cancelled)
        if not process.ok:
            return Rollout.failed(request, process.reason, process.cpu_seconds)
        try:
            trajectory = read(log) if request.log else None
            logged = function_log.read(functions)
        except LogError as error:
            reason = f"{Ending.FAILED.value}: {error}"
            return Rollout.failed(request, reason, process.cpu_seconds)
        sizes = anchor.measure(logged, self.model.sizes(logged))
        return Rollout(request, sizes, trajectory, process.cpu_seconds, None)
