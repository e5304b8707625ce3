"""The identity gate: through the plugin, the default policy must give stock objects bit for bit.

Every number that Nestor prints rests on this. A toolchain is checked on built-in modules before
it is used, and refused with the reason if a single byte differs.
"""

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain, ToolchainError, capabilities
from nestor.files import write_atomically

LEVELS = ("-Oz", "-O2")
PROBES = ("probe.c", "probe.cpp")


@dataclass(frozen=True)
class Identity:
    """The result of the gate on some compiles."""

    checked: int
    """Comparisons made."""
    differing: tuple[str, ...]
    """What was compared where the bytes differed or a compile failed."""

    @property
    def identical(self) -> bool:
        """All comparisons were made and held."""
        return self.checked > 0 and not self.differing


@dataclass(frozen=True)
class Variant:
    """One way to compile by the default policy that must give the stock object."""

    name: str
    flags: Sequence[str]


def variants(plugin: Plugin, folder: Path) -> tuple[Variant, ...]:
    """Return the ways in which the plugin follows the default heuristic."""
    return (
        Variant("idle", (f"-fpass-plugin={plugin.path}",)),
        Variant("default", plugin.flags("default")),
        Variant("logged", plugin.flags("default", log=folder / "log")),
    )


def compare(toolchain: Toolchain, plugin: Plugin, module: Sequence[str], name: str) -> Identity:
    """Compile one module stock, through the plugin and over the channel, and compare the objects.

    :param module: a clang command line without compiler and output, for example
        ``("-Oz", "-c", "x.c")`` or a recorded cc1 line with its input.
    """
    # Needs numpy, which takes longer to import than most calls of the gate take: they read a file.
    from nestor.compiler.channel import ChannelError, compile_over_channel

    differing: list[str] = []
    checked = 0
    with tempfile.TemporaryDirectory(prefix="nestor-identity-") as text:
        folder = Path(text)

        def compiled(label: str, flags: Sequence[str]) -> str:
            out = folder / f"{label}.o"
            outcome = run([toolchain.clang, *module, *flags, "-o", out])
            return _digest(out) if outcome.ok else f"{label}: {outcome.reason}"

        stock = compiled("stock", ())
        for variant in variants(plugin, folder):
            checked += 1
            if compiled(variant.name, variant.flags) != stock:
                differing.append(f"{name} ({variant.name})")
        if capabilities(toolchain).inliner_channel:
            checked += 1
            out = folder / "channel.o"
            try:
                compile_over_channel(
                    [toolchain.clang, *module, "-o", out],
                    lambda row: int(row["inlining_default"][0]),
                )
            except ChannelError:
                differing.append(f"{name} (channel)")
            else:
                if _digest(out) != stock:
                    differing.append(f"{name} (channel)")
    return Identity(checked, tuple(differing))


def check(plugin: Plugin) -> Identity:
    """Run the gate on the built-in modules, C and C++, -Oz and -O2; cached beside the plugin."""
    cached = plugin.path.parent / "identity.json"
    earlier = _read(cached)
    if earlier is not None:
        return earlier
    results = [
        compare(
            plugin.toolchain,
            plugin,
            (level, "-c", str(probe_folder() / probe)),
            f"{probe} {level}",
        )
        for probe in PROBES
        for level in LEVELS
    ]
    result = merge(results)
    if result.identical:
        text = json.dumps({"checked": result.checked, "differing": []})
        write_atomically(cached, text)
    return result


def require(plugin: Plugin) -> Plugin:
    """Return ``plugin`` if it passes the gate.

    :raises ToolchainError: with what differs, if it does not.
    """
    result = check(plugin)
    if not result.identical:
        raise ToolchainError(
            f"LLVM {plugin.toolchain.version} is refused: with the default policy the plugin does "
            f"not reproduce its objects ({', '.join(result.differing)}); please report this."
        )
    return plugin


def merge(results: Sequence[Identity]) -> Identity:
    """Add up results."""
    return Identity(
        sum(r.checked for r in results), tuple(name for r in results for name in r.differing)
    )


def probe_folder() -> Path:
    """Return the folder of the built-in modules' sources."""
    return Path(str(resources.files("nestor"))) / "native" / "identity"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no object"


def _read(path: Path) -> Identity | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Identity(int(stored["checked"]), tuple(stored["differing"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
