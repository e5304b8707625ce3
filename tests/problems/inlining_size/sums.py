"""A policy that is a sum of features, as ``nestor train --learner cma`` makes them."""

import numpy as np

from nestor.policy.layers import Layer
from nestor.policy.network import LogNormalisation, MlpPolicy, build

WEIGHTS = {
    "inlining_default": -7.1,
    "cost_estimate": -0.163,
    "nr_ctant_params": -1.1,
    "callee_basic_block_count": -0.156,
    "caller_basic_block_count": -0.01,
    "callee_disappears": 2.22,
    "callee_has_comdat": 4.53,
    "callee_uses": -0.414,
    "callee_code_size": 0.0,
}


def linear() -> MlpPolicy:
    """Return a sum without a range; it deviates for COMDAT callees."""
    count = len(WEIGHTS)
    return build(
        tuple(WEIGHTS),
        "deviation",
        LogNormalisation(np.zeros(count), np.ones(count)),
        (Layer(np.array([list(WEIGHTS.values())], np.float32), np.array([-2.59], np.float32)),),
        problem="inlining-size",
    )
