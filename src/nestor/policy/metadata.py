"""What a policy file says of itself: the JSON object of docs/reference/formats.md, checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nestor.errors import NestorError
from nestor.policy.rule import PICK, RULES, THRESHOLD

VERSION: Final = 1
ANSWERS: Final = ("decision", "deviation")
TRANSFORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "mlp": ("log", "quantile", "quantile-z-score"),
    "trees": ("none",),
    "portfolio": ("log", "quantile", "quantile-z-score"),
}
MAX_FEATURES: Final = 1024

DEFAULT_RULE: Final = THRESHOLD.name
"""The rule of files that name none."""

_PROBLEM: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_MAX_PROBLEM: Final = 64


class PolicyError(NestorError):
    """A policy that cannot be used; the text is one sentence that says why."""


@dataclass(frozen=True)
class Metadata:
    """
    The JSON object of a policy file; always valid.

    `features` are in the order of the input vector. `provenance` is free-form JSON. `problem` names
    what is decided; what the name stands for is the caller's matter. `rule` is a name of
    `nestor.policy.rule`. `candidate_features` are those of `features` that differ between the
    candidates of one question; all others are the question's own.
    Raises PolicyError for values that docs/reference/formats.md does not allow.
    """

    kind: str
    features: tuple[str, ...]
    answers: str
    transform: str
    provenance: Mapping[str, object] = field(default_factory=dict, hash=False)
    problem: str = field(kw_only=True)
    rule: str = field(default=DEFAULT_RULE, kw_only=True)
    candidate_features: tuple[str, ...] = field(default=(), kw_only=True)
    version: int = field(default=VERSION, kw_only=True)

    def __post_init__(self) -> None:
        # bool is an int to Python, and `true` is no version.
        if type(self.version) is not int or self.version < 1:
            raise PolicyError(f"its version must be {VERSION}, not {shown(self.version)}")
        if self.version > VERSION:
            raise PolicyError(
                f"its version is {shown(self.version)} and this Nestor reads up to {VERSION}: "
                "use a newer Nestor"
            )
        _check_problem(self.problem)
        _one_of("rule", self.rule, tuple(RULES))
        _one_of("kind", self.kind, tuple(TRANSFORMS))
        _one_of("answers", self.answers, ANSWERS)
        _one_of("transform", self.transform, TRANSFORMS[self.kind])
        if not isinstance(self.provenance, Mapping):
            raise PolicyError("its provenance must be a JSON object")
        # A copy: what the caller does to its own object later must not reach a policy.
        object.__setattr__(self, "provenance", copy.deepcopy(dict(self.provenance)))
        _check_names("features", self.features, least=1)
        self._check_rule()

    def _check_rule(self) -> None:
        if self.answers == "deviation" and self.rule != THRESHOLD.name:
            raise PolicyError(
                f"its answers must be decision, not deviation, with the rule {self.rule}"
            )
        if self.kind == "portfolio" and self.rule == THRESHOLD.name:
            raise PolicyError("its members cannot be tried under the rule threshold")
        _check_names("candidate_features", self.candidate_features, least=0)
        strange = [name for name in self.candidate_features if name not in self.features]
        if strange:
            raise PolicyError(f"its candidate feature {shown(strange[0])} is none of its features")
        if self.candidate_features and self.rule != PICK.name:
            raise PolicyError(f"it has candidate features, which the rule {self.rule} does not use")

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Metadata:
        """The metadata in a parsed JSON object; unknown fields are ignored."""
        for name in ("version", "problem", "kind", "features", "answers", "transform"):
            if name not in fields:
                raise PolicyError(f"its metadata lacks the field {name!r}")
        values: dict[str, Any] = {
            name: fields[name] for name in ("version", "problem", "kind", "answers", "transform")
        }
        values |= {name: fields[name] for name in ("provenance", "rule") if name in fields}
        for name in ("features", "candidate_features"):
            names = fields.get(name, [])
            if not isinstance(names, list):
                raise PolicyError(f"its {name} must be a list of names")
            values[name] = tuple(names)
        return cls(**values)

    def to_json(self) -> dict[str, object]:
        """The same as a plain object, for a file."""
        fields: dict[str, object] = {
            "answers": self.answers,
            "features": list(self.features),
            "kind": self.kind,
            "problem": self.problem,
            "provenance": dict(self.provenance),
            "transform": self.transform,
            "version": self.version,
        }
        # Only where they say something: files without them keep their bytes.
        if self.rule != DEFAULT_RULE:
            fields["rule"] = self.rule
        if self.candidate_features:
            fields["candidate_features"] = list(self.candidate_features)
        return fields


def shown(value: object) -> str:
    """A value from a file, safe and short enough for a message."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise PolicyError(f"its {name} must be {' or '.join(allowed)}, not {shown(value)}")


def _check_problem(problem: object) -> None:
    if (
        not isinstance(problem, str)
        or len(problem) > _MAX_PROBLEM
        or not _PROBLEM.fullmatch(problem)
    ):
        raise PolicyError(
            "its problem must be words of a-z and 0-9 with hyphens between them, "
            f"not {shown(problem)}"
        )


def _check_names(field_name: str, names: object, least: int) -> None:
    if not isinstance(names, tuple) or not least <= len(names) <= MAX_FEATURES:
        raise PolicyError(f"its {field_name} must be a list of {least} to {MAX_FEATURES} names")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise PolicyError(f"its {field_name} must be names, not {shown(name)}")
        if name in seen:
            raise PolicyError(f"its {field_name} list {shown(name)} twice")
        seen.add(name)
