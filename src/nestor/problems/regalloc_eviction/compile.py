"""One rollout: a module compiled by the stock clang, which asks Python over the channel.

A policy plays every question. The *default* is the stock compile itself. Where its trajectory is
wanted too, the module is compiled a second time with the answers that
:func:`nestor.problems.regalloc_eviction.default.default_answer` works out, and only the questions
of those functions are kept whose code comes out the same, byte by byte: there the answers are the
compiler's own, and nothing else is shown as the default's choice. The others are counted in
the trajectory's facts.
"""

from pathlib import Path

from nestor.compiler.channel import Channel, ChannelError
from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import ObjectError
from nestor.compiler.process import Ending, run
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problems.regalloc_eviction.cost import function_code, static_cost
from nestor.problems.regalloc_eviction.play import Player, Recording
from nestor.problems.regalloc_eviction.question import channel_options
from nestor.temporary import temporary_folder


def compile_module(request: Request, place: Workplace) -> Rollout:
    """Compile ``request.unit``; the outcome is a ``StaticCost`` of the object."""
    if request.overrides is not None:
        return Rollout.failed(request, "not started: decisions on eviction take no overrides")
    with temporary_folder("rollout") as folder:
        out = Path(folder) / "module.o"
        if request.policy is None or request.policy == DEFAULT:
            return _default(request, place, out)
        try:
            seconds, recording = _play(request, place, out)
            outcome = static_cost(function_code(out))
        except ChannelError as error:
            return Rollout.failed(request, f"{error.ending.value}: {error}")
        except NestorError as error:
            return Rollout.failed(request, f"{Ending.FAILED.value}: {error}")
        trajectory = recording.trajectory() if request.log else None
        kept = place.objects.put(out) if request.keep else None
        return Rollout(request, outcome, trajectory, seconds, None, kept)


def _default(request: Request, place: Workplace, out: Path) -> Rollout:
    process = run(_command(request, place, out), place.limits, cancelled=place.cancelled)
    if not process.ok:
        return Rollout.failed(request, process.reason, process.cpu_seconds)
    seconds, trajectory = process.cpu_seconds, None
    try:
        code = function_code(out)
        if request.log and request.policy is not None:
            replayed = out.with_name("replayed.o")
            used, recording = _play(request, place, replayed)
            seconds += used
            again = function_code(replayed)
            same = [name for name, content in code.items() if again.get(name) == content]
            trajectory = recording.trajectory(only=same)
    except ChannelError as error:
        return Rollout.failed(request, f"{error.ending.value}: {error}", seconds)
    except ObjectError as error:
        return Rollout.failed(request, f"{Ending.FAILED.value}: {error}", seconds)
    kept = place.objects.put(out) if request.keep else None
    return Rollout(request, static_cost(code), trajectory, seconds, None, kept)


def _play(request: Request, place: Workplace, out: Path) -> tuple[float, Recording]:
    """Compile over the channel; return the compiler's CPU seconds and what was asked.

    :raises NestorError: if the compiler fails, or lacks a feature of the policy.
    """
    assert request.policy is not None
    player = Player(request)
    command = _command(request, place, out)
    with Channel(command, channel_options, place.limits, place.cancelled) as channel:
        while (tensors := channel.observe()) is not None:
            channel.answer(player.answer(channel, tensors))
    return channel.cpu_seconds, player.recording


def _command(request: Request, place: Workplace, out: Path) -> list[str]:
    unit = request.unit
    bitcode = place.corpus.bitcode(unit)
    return compile_command(place.plugin.toolchain, unit.options, bitcode, out)
