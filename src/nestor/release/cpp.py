"""A policy's evaluation as C++17 without any library: tables, and a function over them.

The arithmetic is that of docs/reference/formats.md, bit for bit, under any compiler that keeps to
IEEE 754. Compilers may fuse a product with the sum that takes it (``-ffp-contract=fast``, the usual
choice of g++ where the machine has such instructions), which rounds once instead of twice. No
pragma stops all of them, so the products pass through memory that an empty assembly statement may
have changed.
"""

import math
from collections.abc import Iterable
from typing import Final, SupportsFloat

import numpy as np

from nestor.policy.network import (
    LogNormalisation,
    MlpPolicy,
    QuantileNormalisation,
    QuantileScoreNormalisation,
)
from nestor.policy.trees import TreesPolicy
from nestor.release.in_tree import InTreePolicy

_LANES: Final = 8
"""Trees that are walked in step, as in native/policy/Policy.h."""

_DENSE: Final = """\
/// The products have been rounded when this returns, whatever the compiler fuses.
inline void keepRounded(const float *Products) {
#if defined(__GNUC__)
  __asm__ __volatile__("" : : "r"(Products) : "memory");
#else
  (void)Products;
#endif
}

/// Y = Bias + Weights X, each product and each sum rounded, in the order of the inputs.
template <unsigned In, unsigned Out>
inline void multiply(const float *X, const float *Weights, const float *Bias, float *Y) {
  float Products[Out];
  for (unsigned O = 0; O < Out; ++O)
    Y[O] = Bias[O];
  for (unsigned I = 0; I < In; ++I) {
    for (unsigned O = 0; O < Out; ++O)
      Products[O] = Weights[I * Out + O] * X[I];
    keepRounded(Products);
    for (unsigned O = 0; O < Out; ++O)
      Y[O] += Products[O];
  }
}

template <unsigned Count> inline void rectify(float *Y) {
  for (unsigned I = 0; I < Count; ++I)
    Y[I] = Y[I] > 0 ? Y[I] : 0;
}
"""

_SQUASH: Final = """\
/// A piecewise-linear log2(1 + |X|) with the sign of X.
inline double squash(double X) {
  int Exponent;
  const double Mantissa = std::frexp(std::fabs(X) + 1, &Exponent);
  return std::copysign((Exponent - 1) + (2 * Mantissa - 1), X);
}
"""

_COUNT: Final = """\
/// The number of the ascending Boundaries that are at most X.
template <unsigned Count> inline unsigned countUpTo(const float *Boundaries, float X) {
  unsigned Low = 0, High = Count;
  while (Low < High) {
    const unsigned Middle = (Low + High) / 2;
    if (Boundaries[Middle] <= X)
      Low = Middle + 1;
    else
      High = Middle;
  }
  return Low;
}
"""

_WALK: Final = """\
struct Node {
  double Threshold;
  unsigned Feature, Left, Right; // A leaf is its own child.
};
"""


def evaluation(policy: InTreePolicy) -> str:
    """Return the definitions of tables and of ``inline double logit(const double *X)``.

    ``X`` holds the features in the policy's order. The text needs ``<cmath>``, and belongs into a
    namespace of its own.
    """
    return _trees(policy) if isinstance(policy, TreesPolicy) else _network(policy)


def _network(policy: MlpPolicy) -> str:
    parts = [_DENSE, *_tables_of_inputs(policy)]
    widths = policy.widths
    body = [f"  float V0[{widths[0]}];", _inputs(policy)]
    for k, layer in enumerate(policy.layers):
        parts += [
            _table("float", f"Weights{k}", map(_float, layer.weight.T.ravel())),
            _table("float", f"Bias{k}", map(_float, layer.bias)),
        ]
        shape = f"{widths[k]}, {widths[k + 1]}"
        body.append(f"  float V{k + 1}[{widths[k + 1]}];")
        body.append(f"  multiply<{shape}>(V{k}, Weights{k}, Bias{k}, V{k + 1});")
        if k + 1 < len(policy.layers):
            body.append(f"  rectify<{widths[k + 1]}>(V{k + 1});")
    last = f"V{len(policy.layers)}"
    logit = f"{last}[0]" if widths[-1] == 1 else f"{last}[1] - {last}[0]"
    body.append(f"  return {logit};")
    return "\n".join([*parts, "inline double logit(const double *X) {", *body, "}\n"])


def _tables_of_inputs(policy: MlpPolicy) -> list[str]:
    normalisation = policy.normalisation
    if isinstance(normalisation, LogNormalisation):
        return [
            _SQUASH,
            _table("double", "Shift", map(_double, normalisation.shift)),
            _table("double", "Scale", map(_double, normalisation.scale)),
        ]
    assert isinstance(normalisation, QuantileNormalisation | QuantileScoreNormalisation)
    tables = [
        _COUNT,
        _table("float", "Boundaries", map(_float, normalisation.boundaries.ravel())),
    ]
    if isinstance(normalisation, QuantileScoreNormalisation):
        tables += [
            _table("float", "Mean", map(_float, normalisation.mean)),
            _table("float", "Scale", map(_float, normalisation.scale)),
        ]
    return tables


def _inputs(policy: MlpPolicy) -> str:
    """Return the loop that fills V0 with the network's inputs."""
    normalisation = policy.normalisation
    count = len(policy.features)
    loop = f"  for (unsigned I = 0; I < {count}; ++I) {{"
    if isinstance(normalisation, LogNormalisation):
        return "\n".join(
            [
                loop,
                "    const double Z = (squash(X[I]) - Shift[I]) * Scale[I];",
                "    V0[I] = float(Z < -8.0 ? -8.0 : Z > 8.0 ? 8.0 : Z);",
                "  }",
            ]
        )
    assert isinstance(normalisation, QuantileNormalisation | QuantileScoreNormalisation)
    boundaries = normalisation.boundaries.shape[1]
    each = normalisation.width // count
    lines = [
        loop,
        "    const float F = float(X[I]);",
        f"    const float Z = float(countUpTo<{boundaries}>(Boundaries + I * {boundaries}, F)) /"
        f" {boundaries}.0f;",
        f"    V0[{each} * I] = Z;",
        f"    V0[{each} * I + 1] = std::sqrt(Z);",
        f"    V0[{each} * I + 2] = Z * Z;",
    ]
    if isinstance(normalisation, QuantileScoreNormalisation):
        lines.append(f"    V0[{each} * I + 3] = (F - Mean[I]) * Scale[I];")
    return "\n".join([*lines, "  }"])


def _trees(policy: TreesPolicy) -> str:
    count = len(policy.feature)
    own = np.arange(count)
    leaf = policy.feature < 0
    left, right = np.where(leaf, own, policy.left), np.where(leaf, own, policy.right)
    threshold = np.where(leaf, np.inf, policy.threshold)
    feature = np.maximum(policy.feature, 0)
    nodes = (
        f"{{{_double(threshold[i])}, {feature[i]}, {left[i]}, {right[i]}}}" for i in range(count)
    )
    trees = len(policy.root)
    groups = -(-trees // _LANES)
    # A lane without a tree walks node 0, and what it finds is not added.
    roots = [*map(int, policy.root), *[0] * (groups * _LANES - trees)]
    height = _heights(policy)
    steps = [
        max(height[root] for root in policy.root[g * _LANES : (g + 1) * _LANES])
        for g in range(groups)
    ]
    return "\n".join(
        [
            _WALK,
            _table("Node", "Nodes", nodes, 4),
            _table("double", "Values", map(_double, policy.value)),
            _table("unsigned", "Roots", map(str, roots)),
            _table("unsigned", "Steps", map(str, steps)),
            f"""\
inline double logit(const double *X) {{
  double Sum = 0;
  for (unsigned Group = 0; Group < {groups}; ++Group) {{
    unsigned At[{_LANES}];
    for (unsigned K = 0; K < {_LANES}; ++K)
      At[K] = Roots[Group * {_LANES} + K];
    for (unsigned Step = 0; Step < Steps[Group]; ++Step)
      for (unsigned K = 0; K < {_LANES}; ++K) {{
        const Node &N = Nodes[At[K]];
        At[K] = X[N.Feature] <= N.Threshold ? N.Left : N.Right;
      }}
    for (unsigned K = 0; K < {_LANES} && Group * {_LANES} + K < {trees}; ++K)
      Sum += Values[At[K]];
  }}
  return Sum;
}}
""",
        ]
    )


def _heights(policy: TreesPolicy) -> list[int]:
    """Return the steps from each node to the deepest leaf below; children come after parents."""
    heights = [0] * len(policy.feature)
    for node in reversed(np.flatnonzero(policy.feature >= 0).tolist()):
        children = int(policy.left[node]), int(policy.right[node])
        heights[node] = 1 + max(heights[child] for child in children)
    return heights


def _table(kind: str, name: str, values: Iterable[str], each_line: int = 8) -> str:
    items = list(values)
    rows = [", ".join(items[i : i + each_line]) for i in range(0, len(items), each_line)]
    text = ",\n  ".join(rows)
    return f"constexpr {kind} {name}[{len(items)}] = {{\n  {text}}};\n"


def _double(value: SupportsFloat) -> str:
    """Return a double as C++ writes it without rounding."""
    number = float(value)
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    mantissa, _, exponent = number.hex().partition("p")
    whole, _, digits = mantissa.partition(".")
    digits = digits.rstrip("0")
    return f"{whole}.{digits}p{exponent}" if digits else f"{whole}p{exponent}"


def _float(value: SupportsFloat) -> str:
    return _double(value) + "f"
