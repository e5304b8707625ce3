"""What the cache keeps of the user's files and of the identity gate; readable without numpy."""

import json
from pathlib import Path

from nestor.compiler.plugin import Plugin, cache_folder


def policy_copy(digest: str) -> Path:
    """Return where the policy file with this SHA-256 is kept, or would be."""
    return cache_folder().resolve() / "policies" / f"{digest}.safetensors"


def text_copy(kind: str, digest: str) -> Path:
    """Return where the text file with this SHA-256 is kept, or would be.

    :param kind: the folder: ``overrides``, ``summaries``.
    """
    return cache_folder().resolve() / kind / f"{digest}.txt"


def gate_record(plugin: Plugin, problem: str) -> Path:
    """Return the file that says how ``plugin`` did in the identity gate of a problem."""
    return plugin.path.parent / f"identity-{problem}.json"


def read_gate(plugin: Plugin, problem: str) -> tuple[int, tuple[str, ...]] | None:
    """Return the comparisons of an earlier gate and those that differed; None if there was none."""
    try:
        stored = json.loads(gate_record(plugin, problem).read_text(encoding="utf-8"))
        return int(stored["checked"]), tuple(map(str, stored["differing"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_passed(plugin: Plugin, problem: str) -> bool:
    """Tell whether ``plugin`` has gone through the gate of a problem without a difference."""
    record = read_gate(plugin, problem)
    return record is not None and record[0] > 0 and not record[1]
