"""``nestor import``: a policy from a model of another tool."""

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.markup import escape

from nestor.cli.console import print_json, print_line, stdout
from nestor.cli.options import OutputFile
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.files import read_regular
from nestor.policy import bundle
from nestor.policy.spec import PolicyError
from nestor.release.tflite.importing import import_tflite


@dataclass(frozen=True)
class Import:
    """Write a policy file from a TFLite model, such as LLVM's trainers make.

    The model must be a network over buckets of features (BUCKETIZE, their share, its root and
    square), z-scores and features themselves, with ReLU between its layers, that decides by ARG_MAX
    of two numbers or GREATER of one than 0. Any other operator is named and refused. Decisions are
    those of the model but for rounding; inputs that it does not use are left out.

    Examples:
        nestor import model.tflite --out mine.safetensors
        nestor import model.tflite --out mine.safetensors --json
    """

    model: tyro.conf.Positional[Path]
    """The TFLite file."""
    out: OutputFile
    """The policy file."""
    problem: str = DEFAULT_PROBLEM
    """What the model decides."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Read the model, write the policy and say what it is."""
        data = read_regular(self.model, "a TFLite model")
        provenance = {"imported_from": "tflite", "sha256": hashlib.sha256(data).hexdigest()}
        try:
            policy = import_tflite(data, self.problem, provenance)
        except PolicyError as error:
            raise PolicyError(f"Cannot import {self.model}: {error}.") from error
        bundle.save(policy, self.out)
        if self.json:
            print_json(bundle.describe(policy) | {"path": str(self.out)})
            return 0
        print_line(f"features  {', '.join(policy.features)}")
        widths = " → ".join(map(str, policy.widths))
        stdout.print(f"network   {widths}, {policy.parameters:,} parameters", soft_wrap=True)
        use = shlex.join(["nestor", "clang", str(self.out), "--", "-Oz", "-c", "file.c"])
        stdout.print(f"use it:   {escape(use)}", soft_wrap=True)
        return 0
