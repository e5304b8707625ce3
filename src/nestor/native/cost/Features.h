// What the learned residual sees of a block: numbers from the simulation and the code, and keys
// under which training remembers how far the simulation was off.
#pragma once
#include "Simulate.h"

namespace nestor {

constexpr int PlainFeatures = 44 + Categories;

// The names of the plain features before the counts of the categories.
const std::vector<const char *> &plainFeatureNames();

void plainFeatures(const std::vector<Op> &ops, int blockBytes, const Simulation &seen, float *out);

// Hashes that say "the same code" ever more loosely. Equal blocks have equal keys in every build.
struct Keys {
  uint32_t skeleton;  // all but displacements and immediates
  uint32_t forms;     // the sequence of instruction forms
  std::vector<uint32_t> pairs;  // neighbouring forms
  std::vector<uint32_t> links;  // forms where the second waits for the first
  std::vector<uint32_t> singles;
};

void keysOf(const std::vector<Op> &ops, Keys &out);

}  // namespace nestor
