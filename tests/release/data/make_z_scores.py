# mypy: ignore-errors
"""
Make z_scores.tflite and z_scores.npz with TensorFlow, as LLVM's trainers do.

    python tests/release/data/make_z_scores.py

The model has the preprocessing of google/ml-compiler-opt (compiler_opt/rl/feature_ops.py: share of
quantiles, its square and root, z-score), two dense layers and an ARG_MAX. The second file holds
rows, int64 [rows, features], and TensorFlow's own logits of them, f32 [rows, 2]. TensorFlow is no
dependency of Nestor: install it elsewhere (made with 2.21).
"""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
FEATURES = ("cost_estimate", "callee_users", "nr_ctant_params")
UNUSED = ("reward", "discount")
rng = np.random.default_rng(11)
quantiles = [np.sort(rng.integers(-40, 300, 99)).astype(float).tolist() for _ in FEATURES]


class Model(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        width = 4 * len(FEATURES)
        self.w0 = tf.Variable(rng.normal(0, 0.5, (width, 10)).astype(np.float32))
        self.b0 = tf.Variable(rng.normal(0, 0.3, 10).astype(np.float32))
        self.w1 = tf.Variable(rng.normal(0, 0.5, (10, 2)).astype(np.float32))
        self.b1 = tf.Variable(rng.normal(0, 0.3, 2).astype(np.float32))

    def inputs(self, values: list[tf.Tensor]) -> tf.Tensor:
        parts = []
        for value, quantile in zip(values, quantiles, strict=True):
            value = tf.expand_dims(value, -1)
            bucket = tf.raw_ops.Bucketize(input=value, boundaries=quantile)
            x = tf.cast(bucket, tf.float32) / len(quantile)
            y = (tf.cast(value, tf.float32) - np.mean(quantile)) / (np.std(quantile) + 1e-8)
            parts.append(tf.concat([x, x * x, tf.sqrt(x), y], axis=-1))
        return tf.concat(parts, axis=-1)

    def logits(self, values: list[tf.Tensor]) -> tf.Tensor:
        hidden = tf.nn.relu(tf.matmul(self.inputs(values), self.w0) + self.b0)
        return tf.matmul(hidden, self.w1) + self.b1


model = Model()
names = (*FEATURES, *UNUSED)
kinds = [tf.int64] * len(FEATURES) + [tf.float32] * len(UNUSED)
signature = [tf.TensorSpec([1], kind, name) for name, kind in zip(names, kinds, strict=True)]


@tf.function(input_signature=signature)
def action(cost_estimate, callee_users, nr_ctant_params, reward, discount):
    """Return the decision; reward and discount are inputs that nothing reads."""
    logits = model.logits([cost_estimate, callee_users, nr_ctant_params])
    return {"inlining_decision": tf.argmax(logits, axis=-1), "logits": logits}


model.action = action
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(model, folder, signatures={"action": action})
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["action"])
    (HERE / "z_scores.tflite").write_bytes(converter.convert())

rows = np.where(
    rng.random((300, 3)) < 0.7,
    rng.integers(-50, 320, (300, 3)),
    rng.integers(-9999, 99999, (300, 3)),
)
values = [tf.constant(rows[:, index]) for index in range(3)]
np.savez_compressed(
    HERE / "z_scores.npz", rows=rows, logits=model.logits(values).numpy(), features=FEATURES
)
