// What one Python object holds on the native side.
#pragma once
#include "Forest.h"
#include "ResidualMemory.h"

#include <cstring>
#include <unordered_map>

namespace nestor {

constexpr int AllFeatures = PlainFeatures + MemoryFeatures + 1;  // the last is the machine
// Above 0 where training has the block's sequence.
constexpr int SequenceSeen =
    PlainFeatures + int((offsetof(BlockMemory, sequence) + offsetof(KeyMemory, seen)) / sizeof(float));

// One decoded operation as Python reads it.
struct OperationRecord {
  int32_t form, length, base, index, idiom, readCount, writeCount;
  int32_t reads[MostRegisters], writes[MostRegisters];
};
static_assert(sizeof(OperationRecord) == (7 + 2 * MostRegisters) * 4);

struct Answer {
  float cycles, low, high;
  int32_t instructions;
  // Of these, by the FormStatus of their forms:
  int32_t untrained, borrowed, refused;
};
static_assert(sizeof(Answer) == 3 * sizeof(float) + 4 * sizeof(int32_t));

struct Fingerprint {
  uint64_t first, second;
  bool operator==(const Fingerprint &other) const {
    return first == other.first && second == other.second;
  }
};

struct FingerprintHash {
  size_t operator()(const Fingerprint &print) const { return size_t(print.first); }
};

struct Session {
  Decoder decoder;
  Core core;
  std::vector<std::vector<Op>> blocks;
  std::vector<int> sizes;
  ResidualMemory memory;
  std::vector<int8_t> forms;  // a FormStatus of each form; what is not there is untrained
  Bins bins;
  Forest residual, spread, fine;
  float machine = 0;  // its number among those of the model
  float trust = 1;    // 1: the residual is added to the simulation, 0: it stands alone
  std::vector<float> levels;  // of log cycles: see nestor/cost/model/levels.py
  float reach = 0;            // answers nearer than this move to a level
  std::vector<uint8_t> ordered;  // of each level: whether the fine trees order blocks of known sequences
  float grain = 1;               // their answers are rounded to this
  float factor = 1;  // conformal: half-width of the interval over the predicted spread, in logs
  std::unordered_map<Fingerprint, Answer, FingerprintHash> cache;
  Simulation seen;
  Keys keys;
};

// The features of a decoded block, AllFeatures floats.
inline void featuresOf(Session &s, const std::vector<Op> &ops, int size, float *row) {
  s.core.simulate(ops, size, s.seen);
  plainFeatures(ops, size, s.seen, row);
  keysOf(ops, s.keys);
  BlockMemory remembered = s.memory.recall(s.keys);
  std::memcpy(row + PlainFeatures, &remembered, sizeof remembered);
  row[AllFeatures - 1] = s.machine;
}

}  // namespace nestor
