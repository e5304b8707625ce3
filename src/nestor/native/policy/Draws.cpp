//===- Draws.cpp - Numbers to draw actions with ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draws.h"
#include <algorithm>
#include <cmath>

namespace nestor {

uint64_t mix(uint64_t Z) {
  Z += 0x9e3779b97f4a7c15;
  Z = (Z ^ (Z >> 30)) * 0xbf58476d1ce4e5b9;
  Z = (Z ^ (Z >> 27)) * 0x94d049bb133111eb;
  return Z ^ (Z >> 31);
}

double uniform(uint64_t Seed, uint64_t Counter) {
  return double(mix(mix(Seed) ^ Counter) >> 11) * 0x1p-53;
}

namespace {
/// A quotient of two polynomials, coefficients of the highest power first.
struct Ratio {
  double Above[8], Below[8];
  double operator()(double X) const {
    double A = 0, B = 0;
    for (int I = 0; I < 8; ++I) {
      A = A * X + Above[I];
      B = B * X + Below[I];
    }
    return A / B;
  }
};
} // namespace

// Wichura's algorithm AS 241 (PPND16, Applied Statistics 37, 1988): the quantile
// as a quotient of two polynomials in each of three regions.
static constexpr Ratio Centre = {
    {2.5090809287301226727e3, 3.3430575583588128105e4,
     6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0},
    {5.2264952788528545610e3, 2.8729085735721942674e4,
     3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0}};
static constexpr Ratio Side = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2,
     2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4,
     1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0}};
static constexpr Ratio Tail = {
    {2.01033439929228813265e-7, 2.71155556874348757815e-5,
     1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0},
    {2.04426310338993978564e-15, 1.42151175831644588870e-7,
     1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0}};

double normalQuantile(double Probability) {
  const double P = std::max(Probability, 0x1p-54);
  const double Q = P - 0.5;
  if (std::fabs(Q) <= 0.425)
    return Q * Centre(0.180625 - Q * Q);
  const double R = std::sqrt(-std::log(Q < 0 ? P : 1 - P));
  const double Size = R <= 5 ? Side(R - 1.6) : Tail(R - 5);
  return Q < 0 ? -Size : Size;
}

} // namespace nestor
