"""The identity gate: through the plugin, the default policy must give stock objects bit for bit.

Every number that Nestor prints rests on this. A toolchain is checked on built-in modules before
it is used, and refused with the reason if a single byte differs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import ToolchainError
from nestor.errors import NestorError
from nestor.files import sha256_of, write_atomically
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.identity import Circumstances, Command, Way
from nestor.problem.problem import Problem
from nestor.rollout.records import gate_record, read_gate
from nestor.temporary import temporary_folder

LEVELS = ("-Oz", "-O2")
PROBES = ("probe.c", "probe.cpp")


@dataclass(frozen=True)
class Identity:
    """The result of the gate on some compiles."""

    checked: int
    """Comparisons that were made."""
    differing: tuple[str, ...]
    """What was compared where the bytes differed or a compile failed."""

    @property
    def identical(self) -> bool:
        """All comparisons were made and held."""
        return self.checked > 0 and not self.differing


def compare(problem: Problem, plugin: Plugin, module: Sequence[str], name: str) -> Identity:
    """Compile one module in all of the problem's ways and compare the objects with stock's.

    :param module: clang's words without compiler and output, for example
        ``("-Oz", "-c", "x.c")`` or a recorded cc1 line with its input.
    """
    command: Command = [plugin.toolchain.clang, *module]
    with temporary_folder("identity") as text:
        folder = Path(text)
        ways = problem.ways(plugin, DEFAULT, folder)
        digests = [_digest(way, command, folder / f"{n}.o") for n, way in enumerate(ways)]
    differing = [
        f"{name} ({way.name})"
        for way, digest in zip(ways[1:], digests[1:], strict=True)
        if digest is None or digest != digests[0]
    ]
    return Identity(len(ways) - 1, tuple(differing))


def _digest(way: Way, command: Command, out: Path) -> str | None:
    try:
        way.compile(command, out, Circumstances())
        return sha256_of(out)
    except (NestorError, OSError):
        return None


def check(problem: Problem, plugin: Plugin) -> Identity:
    """Run the gate on the built-in modules, C and C++, -Oz and -O2; cached beside the plugin."""
    earlier = read_gate(plugin, problem.name)
    if earlier is not None:
        return Identity(*earlier)
    results = [
        compare(problem, plugin, (level, "-c", str(probe_folder() / probe)), f"{probe} {level}")
        for probe in PROBES
        for level in LEVELS
    ]
    result = Identity(
        sum(r.checked for r in results), tuple(name for r in results for name in r.differing)
    )
    if result.identical:
        text = json.dumps({"checked": result.checked, "differing": []})
        write_atomically(gate_record(plugin, problem.name), text)
    return result


def require(problem: Problem, plugin: Plugin) -> Plugin:
    """Return ``plugin`` if it passes the gate; a problem without ways to compare passes.

    :raises ToolchainError: with what differs, if it does not.
    """
    if not has_ways(problem, plugin):
        return plugin
    result = check(problem, plugin)
    if not result.identical:
        raise ToolchainError(
            f"LLVM {plugin.toolchain.version} is refused: with the default policy the plugin does "
            f"not reproduce its objects ({', '.join(result.differing)}); please report this."
        )
    return plugin


def has_ways(problem: Problem, plugin: Plugin, policy: NamedPolicy = DEFAULT) -> bool:
    """Tell whether ``problem`` has several ways to compile under ``policy``, which must agree."""
    with temporary_folder("identity") as folder:
        return len(problem.ways(plugin, policy, Path(folder))) > 1


def probe_folder() -> Path:
    """Return the folder of the built-in modules' sources."""
    return Path(str(resources.files("nestor"))) / "native" / "identity"
