#include "Forest.h"

#include <algorithm>

namespace nestor {

void Bins::set(const float *e, const int32_t *s, int features) {
  starts.assign(s, s + features + 1);
  edges.assign(e, e + starts.back());
}

void Bins::apply(const float *rows, int stride, int32_t *out) const {
  for (int f = 0; f < features(); ++f) {
    const float *begin = edges.data() + starts[size_t(f)];
    int count = starts[size_t(f) + 1] - starts[size_t(f)];
    for (int lane = 0; lane < Lanes; ++lane) {
      float value = rows[lane * stride + f];
      // The number of edges below the value, without a branch that mispredicts.
      const float *low = begin;
      for (int left = count; left > 0;) {
        int half = (left + 1) / 2;
        low = low[half - 1] < value ? low + half : low;
        left = left == 1 ? 0 : left - half;
      }
      int bin = int(low - begin);
      out[f * Lanes + lane] = bin;
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

void Forest::evaluate(const int32_t *bins, float *out) const {
  float sums[Lanes];
  for (int lane = 0; lane < Lanes; ++lane) sums[lane] = base;
  for (size_t tree = 0; tree + 1 < first.size(); ++tree) {
    const uint32_t *node = nodes.data() + first[tree];
    const float *value = values.data() + first[tree];
    uint32_t at[Lanes] = {};
    for (int level = 0; level < depth[tree]; ++level) {
#pragma clang loop vectorize(enable) unroll(full)
      for (int lane = 0; lane < Lanes; ++lane) {
        uint32_t here = node[at[lane]];
        uint32_t bin = uint32_t(bins[(here & 255) * Lanes + uint32_t(lane)]);
        at[lane] = bin <= (here >> 8 & 255) ? here >> 16 & 255 : here >> 24;
      }
    }
    for (int lane = 0; lane < Lanes; ++lane) sums[lane] += value[at[lane]];
  }
  for (int lane = 0; lane < Lanes; ++lane) out[lane] = sums[lane];
}

}  // namespace nestor
