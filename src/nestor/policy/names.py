"""From the name that a user types to a policy: a problem's built-ins, or a file.

A :class:`NamedPolicy` carries the bytes of the file, so that a request that names it can be sent
anywhere.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nestor.errors import meant
from nestor.policy import bundle
from nestor.policy.spec import Policy, PolicyError


@dataclass(frozen=True)
class NamedPolicy:
    """A policy under the name that the user typed; two are equal if their files are."""

    name: str = field(compare=False)
    policy: Policy | None = field(compare=False, repr=False)
    """None is the default heuristic."""
    data: bytes = field(compare=False, repr=False)
    """The bytes of its file; none for the default heuristic."""
    digest: str
    """SHA-256 of the file; ``default`` for the default heuristic."""

    @staticmethod
    def of(policy: Policy, name: str = "", data: bytes | None = None) -> "NamedPolicy":
        """Return ``policy`` as something that a request can name.

        :param data: the bytes of the file that it was read from; None for those to be written.
        """
        content = bundle.to_bytes(policy) if data is None else data
        digest = hashlib.sha256(content).hexdigest()
        return NamedPolicy(name or digest[:12], policy, content, digest)

    def features(self) -> tuple[str, ...]:
        """Return the features that it reads; none for the default heuristic."""
        return () if self.policy is None else self.policy.features


DEFAULT = NamedPolicy("default", None, b"", "default")
"""The default heuristic, seen through the plugin or the channel."""


class Builtins(Protocol):
    """The policies of a problem that need no file."""

    @property
    def names(self) -> tuple[str, ...]:
        """How they are written, for messages and help texts."""

    def resolve(self, name: str) -> Policy | None:
        """Return the policy of this name, None if it is none of theirs.

        :raises PolicyError: for a name that is theirs and malformed.
        """


@dataclass(frozen=True)
class _NoBuiltins:
    names: tuple[str, ...] = ()

    def resolve(self, name: str) -> Policy | None:
        """Return None."""
        return None


NO_BUILTINS: Builtins = _NoBuiltins()


def named_policy(name_or_path: str, builtins: Builtins = NO_BUILTINS) -> NamedPolicy:
    """Return the policy that a user means.

    ``default`` is the default heuristic. A built-in name wins over a file: write ``./never`` for a
    file of that name.

    :raises PolicyError: if there is no such policy, or the file is not one.
    """
    if name_or_path == "default":
        return DEFAULT
    policy = builtins.resolve(name_or_path)
    if policy is None:
        try:
            found = Path(name_or_path).exists()
        except (OSError, ValueError):  # too long, or with a NUL: `load` words the reason
            found = True
        if not found:
            names = ("default", *builtins.names)
            raise PolicyError(
                f"There is no policy file {name_or_path!r}{meant(name_or_path, names)}; give the"
                f" path of one, or a built-in policy: {', '.join(names)}."
            )
        data = bundle.read(name_or_path)
        return NamedPolicy.of(bundle.from_bytes(data, name_or_path), name_or_path, data)
    return NamedPolicy.of(policy, name_or_path)
