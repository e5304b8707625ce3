#include "Forest.h"

#include <algorithm>

namespace nestor {

void Bins::set(const float *e, const int32_t *s, int features) {
  starts.assign(s, s + features + 1);
  edges.assign(e, e + starts.back());
}

void Bins::apply(const float *rows, int stride, int count, uint8_t *out) const {
  for (int f = 0; f < features(); ++f) {
    const float *begin = edges.data() + starts[size_t(f)];
    int edgeCount = starts[size_t(f) + 1] - starts[size_t(f)];
    for (int lane = 0; lane < count; ++lane) {
      float value = rows[lane * stride + f];
      // The number of edges below the value, without a branch that mispredicts.
      const float *low = begin;
      for (int left = edgeCount; left > 0;) {
        int half = (left + 1) / 2;
        low = low[half - 1] < value ? low + half : low;
        left = left == 1 ? 0 : left - half;
      }
      out[f * Lanes + lane] = uint8_t(low - begin);
    }
  }
}

void Forest::set(const uint32_t *n, const float *v, const int32_t *f, const int32_t *d, int trees,
                 float start) {
  first.assign(f, f + trees + 1);
  depth.assign(d, d + trees);
  nodes.assign(n, n + first.back());
  values.assign(v, v + first.back());
  base = start;
}

void Forest::evaluate(const uint8_t *bins, int count, float *out) const {
  float sums[Lanes];
  std::fill(sums, sums + Lanes, base);
  for (size_t tree = 0; tree + 1 < first.size(); ++tree) {
    const uint32_t *node = nodes.data() + first[tree];
    const float *value = values.data() + first[tree];
    for (int start = 0; start < count; start += Group) {
      const uint8_t *mine = bins + start;
      uint32_t at[Group] = {};
      for (int level = 0; level < depth[tree]; ++level) {
        // Scalar on purpose: the loads of independent walks overlap, and vector gathers are slower
        // than that on the processors tried.
#pragma clang loop vectorize(disable) unroll(full)
        for (int lane = 0; lane < Group; ++lane) {
          uint32_t here = node[at[lane]];
          uint32_t bin = mine[(here >> FeatureShift & 255) * Lanes + uint32_t(lane)];
          // The child's number is shifted into place without a branch that would mispredict.
          at[lane] = here >> (bin <= (here >> BinShift & 255) ? LeftShift : RightShift) & 255;
        }
      }
      for (int lane = 0; lane < Group; ++lane) sums[start + lane] += value[at[lane]];
    }
  }
  std::copy(sums, sums + count, out);
}

}  // namespace nestor
