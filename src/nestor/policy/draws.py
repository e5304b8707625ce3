"""Numbers to draw actions with: the same in Python and in C++, bit for bit.

The same in C++ is ``native/policy/Draws.cpp``. Nothing depends on the order of questions: a number
is a function of a seed and a counter, such as a question's key.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]

_MASK: Final = (1 << 64) - 1

#: Half of the least uniform number above 0: `normal_quantile` takes no smaller one.
_LEAST: Final = 2.0**-54

# Wichura's algorithm AS 241 (PPND16, Applied Statistics 37, 1988): the normal quantile as a
# quotient of two polynomials in each of three regions, coefficients of the highest power first.
_CENTRE: Final = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_SIDE: Final = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_TAIL: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def uniform(seed: int, counter: int | npt.NDArray[np.uint64] | npt.NDArray[np.int64]) -> F64:
    """Return uniform numbers in [0, 1), f64 of the shape of ``counter``.

    SplitMix64's finaliser (Steele et al. 2014) over the pair of the two arguments.

    :param seed: any integer; its lowest 64 bits count.
    :param counter: one integer or an array; a negative one counts as the same 64 bits.
    """
    if isinstance(counter, int):
        counter = np.array(counter & _MASK, dtype=np.uint64)
    bits = counter.astype(np.uint64)
    start = _mix(np.array([seed & _MASK], dtype=np.uint64))
    mixed = _mix(start ^ bits.reshape(-1)) >> np.uint64(11)
    return (mixed.astype(np.float64) * 2.0**-53).reshape(bits.shape)


def normal_quantile(probability: F64) -> F64:
    """Return the quantiles of the standard normal distribution, f64 ``[n]``.

    :param probability: ``[n]``, in [0, 1); a number below 2^-54 counts as 2^-54, so that every
        quantile is finite.
    """
    p = np.maximum(probability, _LEAST)
    q = p - 0.5
    result = q * _ratio(_CENTRE, 0.180625 - q * q)
    outer = np.flatnonzero(np.abs(q) > 0.425)
    if outer.size:
        below = np.where(q[outer] < 0, p[outer], 1.0 - p[outer])
        # The C library's logarithm, as in C++: NumPy's own differs from it in the last bit.
        logs = np.fromiter(map(math.log, below.tolist()), np.float64, outer.size)
        r = np.sqrt(-logs)
        size = np.where(r <= 5.0, _ratio(_SIDE, r - 1.6), _ratio(_TAIL, r - 5.0))
        result[outer] = np.where(q[outer] < 0, -size, size)
    return result


def _mix(z: U64) -> U64:
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _ratio(polynomials: tuple[Sequence[float], Sequence[float]], x: F64) -> F64:
    above, below = (np.zeros_like(x), np.zeros_like(x))
    for a, b in zip(*polynomials, strict=True):
        above, below = above * x + a, below * x + b
    return above / below
