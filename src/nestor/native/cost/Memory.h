// How far the simulation was off in training, under keys of ever looser likeness.
#pragma once
#include "Features.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nestor {

constexpr int MemoryFeatures = 19;

class Memory {
public:
  struct Entry {
    uint32_t key;
    float sum;  // of log(measured / simulated)
    uint32_t count;
  };
  Memory() { clear(); }
  void clear();
  void add(const Keys &keys, float residual);
  // What is known of a block, MemoryFeatures floats.
  void recall(const Keys &keys, float *out) const;
  void put(const Entry &entry);
  std::vector<Entry> entries() const;

private:
  std::vector<Entry> slots;  // open addressing; a free slot has count 0
  size_t used = 0;
  Entry &find(uint32_t key);
  const Entry *look(uint32_t key) const;
  void note(uint32_t key, float residual);
  void grow();
  void summary(const std::vector<uint32_t> &list, float prior, float *out) const;
};

}  // namespace nestor
