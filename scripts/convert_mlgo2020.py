"""
Convert the published 2020 inlining-for-size policy to a policy file.

    python scripts/convert_mlgo2020.py ../shared/data/mlgo2020

The folder holds the policy as numpy arrays (mlgo2020_inliner.json, mlgo2020_inliner.npz) and an
independent reader of them (mlgo2020.py). Written are the packaged policy, and a table of inputs
with the reader's margins that the tests compare against.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from nestor.files import write_atomically
from nestor.policy import bundle
from nestor.policy.network import Layer, MlpPolicy, QuantileNormalisation, build

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "src/nestor/problems/inlining_size/data/mlgo2020.safetensors"
TABLE = ROOT / "tests/problems/inlining_size/data/mlgo2020_reference.safetensors"
ROWS = 6000


def convert(folder: Path) -> MlpPolicy:
    """Return the policy in the folder."""
    description = json.loads((folder / "mlgo2020_inliner.json").read_text(encoding="utf-8"))
    arrays = np.load(folder / "mlgo2020_inliner.npz", allow_pickle=False)
    features: list[str] = []
    rows: list[int] = []
    row = 0
    for feature in description["features"]:
        if feature["kind"] == "quantile":
            features.append(feature["feature"])
            rows += range(row, row + 3)
        # `inlining_default` was always 0 in the published policy: its row of weights has no effect.
        row += feature["width"]
    weights = [arrays["W0"][rows], arrays["W1"], arrays["W2"]]
    layers = [
        # Stored as [in, out] there and as [out, in] here.
        Layer(np.ascontiguousarray(weight.T), arrays[f"b{k}"])
        for k, weight in enumerate(weights)
    ]
    boundaries = np.stack([arrays[f"q_{name}"] for name in features])
    provenance = {name: description[name] for name in ("name", "source", "license", "sha256")}
    return build(
        features,
        "decision",
        QuantileNormalisation(boundaries),
        layers,
        provenance,
        problem="inlining-size",
    )


def reference(folder: Path, policy: MlpPolicy) -> dict[str, np.ndarray[Any, Any]]:
    """Return random inputs, i32 ``[ROWS, features]``, and the reader's margins, f32 ``[ROWS]``."""
    spec = importlib.util.spec_from_file_location("mlgo2020_reader", folder / "mlgo2020.py")
    assert spec is not None and spec.loader is not None
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    published = reader.Policy(str(folder))
    assert tuple(published.features) == policy.features
    assert isinstance(policy.normalisation, QuantileNormalisation)
    boundaries = policy.normalisation.boundaries
    rng = np.random.default_rng(2020)
    count, width = 2 * ROWS, len(policy.features)
    # Around the boundaries, where the buckets are; and now and then far out.
    picks = rng.integers(0, boundaries.shape[1], (count, width))
    x = boundaries[np.arange(width), picks].astype(np.int64) + rng.integers(-1, 2, (count, width))
    far = rng.integers(-200_000, 200_000, (count, width))
    x = np.where(rng.random((count, width)) < 0.05, far, x)
    logits = published.logits(x)
    margins = logits[:, 1] - logits[:, 0]
    clear = np.flatnonzero(np.abs(margins) > 1e-5)[:ROWS]  # a tie may fall either way
    return {"inputs": x[clear].astype(np.int32), "margins": margins[clear]}


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds mlgo2020_inliner.npz and its reader")
    folder = parser.parse_args().folder
    policy = convert(folder)
    bundle.save(policy, POLICY)
    write_atomically(TABLE, save(reference(folder, policy)))


if __name__ == "__main__":
    main()
