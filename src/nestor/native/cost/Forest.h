// Regression trees over binned features, many blocks at a time.
#pragma once
#include "Codes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nestor {

// Blocks that go through the trees together, so that a tree is fetched once for all of them, and
// how many of these walk a tree side by side.
constexpr int Lanes = 128, Group = 64;

// The edges of each feature's bins, shared by all forests of a model.
class Bins {
public:
  void set(const float *edges, const int32_t *starts, int features);
  // rows: count × stride floats; out: features × Lanes bin numbers.
  void apply(const float *rows, int stride, int count, uint8_t *out) const;
  int features() const { return int(starts.size()) - 1; }

private:
  std::vector<float> edges;
  std::vector<int32_t> starts{0};
};

class Forest {
public:
  // A node holds feature, bin and children at the bits of NodeShift, with child numbers inside its tree,
  // inner nodes before leaves; a leaf leads to itself. `first` and `depth` are per tree.
  void set(const uint32_t *nodes, const float *values, const int32_t *first, const int32_t *depth,
           int trees, float base);
  // Adds up the trees for `count` blocks, at most Lanes.
  void evaluate(const uint8_t *bins, int count, float *out) const;

private:
  std::vector<uint32_t> nodes;
  std::vector<float> values;
  std::vector<int32_t> first, depth;
  float base = 0;
};

}  // namespace nestor
