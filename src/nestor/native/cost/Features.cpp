#include "Features.h"

#include <algorithm>
#include <cmath>

namespace nestor {
namespace {

uint32_t mix(uint32_t seed, uint64_t value) {
  uint64_t x = (uint64_t(seed) << 32 ^ value) + 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return uint32_t(x >> 32 ^ x);
}

float logOf(float value) { return std::log(std::max(value, 0.05f)); }

// Each feature's name, as in nestor/cost/model/features.py, beside its value in plainFeatures.
#define NESTOR_PLAIN_FEATURES(X)                                                                 \
  X("simulated", cycles) X("chain", chain) X("front end", front) X("ports", ports)                \
  X("over chain", cycles - chain) X("over front end", cycles - front)                             \
  X("over ports", cycles - ports) X("instructions", n) X("bytes", blockBytes)                     \
  X("bytes each", float(blockBytes) / n) X("longest", longest) X("long ones", lengthy)            \
  X("forwarded", seen.forwarded) X("renamed", seen.renamed) X("partly forwarded", seen.partial)   \
  X("split lines", seen.splits) X("split pages", seen.pageSplits) X("lines", seen.lines)          \
  X("pages", seen.pages) X("loads", seen.loads) X("stores", seen.stores) X("slots", seen.slots)   \
  X("ALU", aluSum) X("busiest ALU", aluMax) X("load ports", loadSum) X("store ports", store)      \
  X("FP", fpSum) X("busiest FP", fpMax) X("FP store", fpStore) X("divider", divide)               \
  X("high bytes", high) X("rip-relative", rip) X("indexed", indexed) X("wide accesses", wide)     \
  X("narrow", narrow) X("segments", prefixed) X("idioms", idioms)                                 \
  X("memory operands", memoryAlu) X("large immediates", immediates) X("close links", links)       \
  X("carried", __builtin_popcountll(carried[0]))                                                  \
  X("carried others", __builtin_popcountll(carried[1])) X("measured instructions", measured)      \
  X("last category", n > 0 ? ops.back().category : 0)

}  // namespace

const std::vector<const char *> &plainFeatureNames() {
#define NESTOR_NAME(Name, Value) Name,
  static const std::vector<const char *> names{NESTOR_PLAIN_FEATURES(NESTOR_NAME)};
#undef NESTOR_NAME
  return names;
}

void plainFeatures(const std::vector<Op> &ops, int blockBytes, const Simulation &seen, float *out) {
  int n = int(ops.size());
  float aluSum = 0, aluMax = 0, loadSum = 0, fpSum = 0, fpMax = 0;
  for (int p = 0; p < 6; ++p) aluSum += seen.pressure[p], aluMax = std::max(aluMax, seen.pressure[p]);
  for (int p = 6; p < 10; ++p) loadSum += seen.pressure[p];
  for (int p = 12; p < 16; ++p) fpSum += seen.pressure[p], fpMax = std::max(fpMax, seen.pressure[p]);
  float store = std::max(seen.pressure[8], seen.pressure[9]);
  float fpStore = std::max(seen.pressure[16], seen.pressure[17]);
  float divide = std::max(seen.pressure[18], seen.pressure[19]);
  float cycles = logOf(seen.cycles), chain = logOf(seen.chain), front = logOf(seen.slots / std::max(seen.width, 1));
  float ports = logOf(std::max({aluMax, fpMax, loadSum / 4, store, fpStore, divide}));
  float counts[Categories] = {};
  int longest = 0, lengthy = 0, high = 0, rip = 0, indexed = 0, wide = 0, narrow = 0, prefixed = 0;
  uint64_t written[2] = {}, readFirst[2] = {}, carried[2] = {};
  int links = 0, lastWriter[256], memoryAlu = 0, immediates = 0, position = 0, idioms = 0;
  std::fill(lastWriter, lastWriter + 256, -1);
  for (const Op &op : ops) {
    counts[std::min<int>(op.category, Categories - 1)] += 1;
    longest = std::max<int>(longest, op.length);
    lengthy += op.length > 7, high += op.highByte, rip += op.ripRelative;
    indexed += op.index != None, wide += op.memorySize > 16, narrow += op.width < 4;
    prefixed += op.segment, idioms += op.zeroIdiom, memoryAlu += op.load && op.readCount;
    immediates += op.immediate > 0x7FFF || op.immediate < -0x8000;
    for (int i = 0; i < op.readCount; ++i) {
      int r = op.reads[i];
      if (lastWriter[r] >= 0) links += position - lastWriter[r] <= 2;
      if (!(written[r >> 6 & 1] >> (r & 63) & 1)) readFirst[r >> 6 & 1] |= 1ull << (r & 63);
    }
    for (int i = 0; i < op.writeCount; ++i) {
      int r = op.writes[i];
      written[r >> 6 & 1] |= 1ull << (r & 63), lastWriter[r] = position;
    }
    ++position;
  }
  for (int k = 0; k < 2; ++k) carried[k] = written[k] & readFirst[k];
  int measured = std::clamp(4000 / std::max(blockBytes, 1), 8, 200) / 2 * n;
#define NESTOR_VALUE(Name, Value) float(Value),
  float values[] = {NESTOR_PLAIN_FEATURES(NESTOR_VALUE)};
#undef NESTOR_VALUE
  static_assert(sizeof values / sizeof values[0] + Categories == PlainFeatures);
  std::copy(std::begin(values), std::end(values), out);
  std::copy(counts, counts + Categories, out + (PlainFeatures - Categories));
}

void keysOf(const std::vector<Op> &ops, Keys &out) {
  out.pairs.clear(), out.links.clear(), out.singles.clear();
  uint32_t forms = 1, skeleton = 2;
  int previous = ops.empty() ? -1 : ops.back().form;  // the block follows itself
  int writer[256];
  std::fill(writer, writer + 256, -1);
  for (int pass = 0; pass < 2; ++pass)
    for (const Op &op : ops) {
      uint32_t form = uint32_t(op.form);
      if (pass == 1) {
        uint64_t registers = uint64_t(op.base) << 8 | op.index | uint64_t(op.destination) << 16 |
                             uint64_t(op.source) << 24;
        for (int i = 0; i < op.readCount; ++i) registers = registers * 131 + op.reads[i];
        forms = mix(forms, form), skeleton = mix(mix(skeleton, form), registers);
        out.singles.push_back(mix(3, form));
        out.pairs.push_back(mix(mix(4, uint32_t(previous)), form));
        auto link = [&](int reg, int kind) {
          if (reg != None && reg < Carry && writer[reg] >= 0)
            out.links.push_back(mix(mix(5 + kind, uint32_t(writer[reg])), form));
        };
        for (int i = 0; i < op.readCount; ++i) link(op.reads[i], 0);
        if (op.load) link(op.base, 1), link(op.index, 1);
        previous = op.form;
      }
      for (int i = 0; i < op.writeCount; ++i) writer[op.writes[i]] = op.form;
    }
  out.forms = forms, out.skeleton = skeleton;
}

}  // namespace nestor
