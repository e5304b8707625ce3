//===- Draws.h - Numbers to draw actions with -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same numbers as src/nestor/policy/draws.py gives, bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_DRAWS_H
#define NESTOR_DRAWS_H

#include <cstdint>

namespace nestor {

/// SplitMix64's output for the state \p Z (Steele et al. 2014): any bits become others
/// that look random.
uint64_t mix(uint64_t Z);

/// A uniform number in [0, 1) that depends on nothing but the two arguments, so
/// that a trajectory does not depend on the order of decisions (SplitMix64's
/// finaliser, Steele et al. 2014, over the pair).
double uniform(uint64_t Seed, uint64_t Counter);

/// The quantile of the standard normal distribution at \p Probability in [0, 1);
/// below 2^-54 that of 2^-54, so that it is finite.
double normalQuantile(double Probability);

} // namespace nestor

#endif
