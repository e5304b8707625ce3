// How far the simulation was off in training, under keys of ever looser likeness.
#pragma once
#include "Features.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nestor {

// What is remembered of a list of keys.
struct ListMemory {
  float mean, least, most;  // of the shrunk means of the keys
  float seen;               // log(1 + count) of the rarest key
  float unseen;             // keys that training never met
};

// What is remembered of one key.
struct KeyMemory {
  float mean, seen;
};

// What is remembered of a block: features of the trees.
struct BlockMemory {
  ListMemory form, pair, link;
  KeyMemory skeleton, sequence;
};
constexpr int MemoryFeatures = sizeof(BlockMemory) / sizeof(float);
static_assert(MemoryFeatures == 19);

class ResidualMemory {
public:
  struct Entry {
    uint32_t key;
    float sum;  // of log(measured / simulated)
    uint32_t count;
  };
  ResidualMemory() { clear(); }
  void clear();
  void add(const Keys &keys, float residual);
  BlockMemory recall(const Keys &keys) const;
  void put(const Entry &entry);
  std::vector<Entry> entries() const;

private:
  std::vector<Entry> slots;  // open addressing; a free slot has count 0
  size_t used = 0;
  Entry &find(uint32_t key);
  const Entry *look(uint32_t key) const;
  void note(uint32_t key, float residual);
  void grow();
  ListMemory summary(const std::vector<uint32_t> &list, float prior) const;
  KeyMemory whole(uint32_t key) const;
};

}  // namespace nestor
