#include "ResidualMemory.h"

#include <algorithm>
#include <cmath>

namespace nestor {

void ResidualMemory::clear() {
  slots.assign(1024, {0, 0, 0});
  used = 0;
}

ResidualMemory::Entry &ResidualMemory::find(uint32_t key) {
  size_t mask = slots.size() - 1, at = (key * 2654435769u) & mask;
  while (slots[at].count && slots[at].key != key) at = (at + 1) & mask;
  return slots[at];
}

const ResidualMemory::Entry *ResidualMemory::look(uint32_t key) const {
  const Entry &entry = const_cast<ResidualMemory *>(this)->find(key);
  return entry.count ? &entry : nullptr;
}

void ResidualMemory::grow() {
  std::vector<Entry> old(slots.size() * 2, Entry{0, 0, 0});
  old.swap(slots);
  for (const Entry &entry : old)
    if (entry.count) find(entry.key) = entry;
}

void ResidualMemory::put(const Entry &entry) {
  if (2 * ++used > slots.size()) grow();
  find(entry.key) = entry;
}

void ResidualMemory::note(uint32_t key, float residual) {
  Entry &entry = find(key);
  if (!entry.count) return put({key, residual, 1});
  entry.sum += residual, ++entry.count;
}

void ResidualMemory::add(const Keys &keys, float residual) {
  note(keys.skeleton, residual), note(keys.forms, residual);
  for (auto *list : {&keys.singles, &keys.pairs, &keys.links}) {
    std::vector<uint32_t> once(*list);
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    for (uint32_t key : once) note(key, residual);
  }
}

ListMemory ResidualMemory::summary(const std::vector<uint32_t> &list, float prior) const {
  float sum = 0, least = 0, greatest = 0, rarest = 1e6f, unknown = 0;
  for (uint32_t key : list) {
    const Entry *entry = look(key);
    float count = entry ? float(entry->count) : 0, mean = entry ? entry->sum / (count + prior) : 0;
    sum += mean, least = std::min(least, mean), greatest = std::max(greatest, mean);
    rarest = std::min(rarest, count), unknown += !entry;
  }
  return {list.empty() ? 0 : sum / float(list.size()), least, greatest,
          std::log1p(list.empty() ? 1e3f : rarest), unknown};
}

KeyMemory ResidualMemory::whole(uint32_t key) const {
  const Entry *entry = look(key);
  return {entry ? entry->sum / float(entry->count) : -2.0f,
          entry ? std::log1p(float(entry->count)) : 0.0f};
}

BlockMemory ResidualMemory::recall(const Keys &keys) const {
  return {summary(keys.singles, 10), summary(keys.pairs, 4), summary(keys.links, 4),
          whole(keys.skeleton), whole(keys.forms)};
}

std::vector<ResidualMemory::Entry> ResidualMemory::entries() const {
  std::vector<Entry> out;
  for (const Entry &entry : slots)
    if (entry.count) out.push_back(entry);
  std::sort(out.begin(), out.end(), [](auto &a, auto &b) { return a.key < b.key; });
  return out;
}

}  // namespace nestor
