// Prediction: bytes to cycles with an interval, nothing in between leaves the native side.
#include "Session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace nestor;

namespace {

uint64_t word(const uint8_t *p, int size) {
  uint64_t value = 0;
  std::memcpy(&value, p, size_t(std::min(size, 8)));
  return value;
}

// Two independent 64-bit hashes: blocks that differ share neither in practice.
Fingerprint fingerprint(const uint8_t *p, int size) {
  Fingerprint out{uint64_t(size) * 0x9E3779B97F4A7C15ull, ~uint64_t(size)};
  for (; size > 0; p += 8, size -= 8) {
    uint64_t value = word(p, size);
    out.first = (out.first ^ value) * 0xFF51AFD7ED558CCDull, out.first ^= out.first >> 32;
    out.second = (out.second + value) * 0xC4CEB9FE1A85EC53ull, out.second ^= out.second >> 29;
  }
  return out;
}

constexpr size_t CacheMost = 4'000'000;

// The level nearest to `logCycles` if that is within reach, or a place `fine` beside it where the fine
// trees order the blocks of that level.
float moved(const Session &s, float logCycles, float fine) {
  auto above = std::lower_bound(s.levels.begin(), s.levels.end(), logCycles);
  float best = logCycles, distance = s.reach, beside = 0;
  for (auto level = above - (above != s.levels.begin()); level != s.levels.end() && level <= above; ++level)
    if (std::fabs(*level - logCycles) <= distance) {
      best = *level, distance = std::fabs(best - logCycles);
      beside = s.ordered[size_t(level - s.levels.begin())] ? fine : 0;
    }
  return best + std::clamp(std::nearbyint(beside / s.grain) * s.grain, -s.reach, s.reach);
}

// An answer without cycles: how many instructions there are, and of which standing.
Answer countForms(const Session &s, const std::vector<Op> &ops) {
  Answer out{NAN, NAN, NAN, int32_t(ops.size()), 0, 0, 0};
  for (const Op &op : ops) {
    size_t form = size_t(op.form / Variants);
    int8_t status = form < s.forms.size() ? s.forms[form] : int8_t(Untrained);
    out.untrained += status == Untrained, out.borrowed += status == Borrowed;
    out.refused += status == Refused;
  }
  return out;
}

// Blocks that wait for the trees, which take Lanes at a time.
struct Batch {
  Session &session;
  Answer *answers;
  int64_t where[Lanes];
  Fingerprint prints[Lanes];
  Answer counted[Lanes];  // what is said of the instructions
  float rows[Lanes * AllFeatures];
  int count = 0;

  // Computes the features of a block, whose answer goes to answers[at].
  void add(int64_t at, const Fingerprint &print, const std::vector<Op> &ops, int size) {
    featuresOf(session, ops, size, rows + count * AllFeatures);
    where[count] = at, prints[count] = print, counted[count] = countForms(session, ops);
    if (++count == Lanes) flush();
  }

  void flush() {
    if (!count) return;
    uint8_t bins[AllFeatures * Lanes] = {};
    float residual[Lanes], spread[Lanes], fine[Lanes];
    session.bins.apply(rows, AllFeatures, count, bins);
    session.residual.evaluate(bins, count, residual);
    session.spread.evaluate(bins, count, spread);
    session.fine.evaluate(bins, count, fine);
    for (int lane = 0; lane < count; ++lane) {
      float learned = session.trust * rows[lane * AllFeatures] + residual[lane];
      float half = session.factor * std::exp(spread[lane]);
      // The fine trees were judged on sequences that training has, and mislead on others.
      bool known = rows[lane * AllFeatures + SequenceSeen] > 0;
      float level = moved(session, learned, known ? fine[lane] : 0);
      // The interval is that of the trees, and holds the answer in any case.
      Answer answer = counted[lane];
      answer.cycles = std::exp(level);
      answer.low = std::exp(std::min(learned - half, level));
      answer.high = std::exp(std::max(learned + half, level));
      answers[where[lane]] = answer;
      if (session.cache.size() < CacheMost) session.cache.emplace(prints[lane], answer);
    }
    count = 0;
  }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Sets the bins of all features and the three forests: see Forest.h for their layout.
int32_t nestor_cost_bins(Session *s, const float *edges, const int32_t *starts, int32_t features) {
  if (features > AllFeatures) return 1;
  s->bins.set(edges, starts, features);
  s->cache.clear();
  return 0;
}

void nestor_cost_forest(Session *s, int32_t which, const uint32_t *nodes, const float *values,
                        const int32_t *first, const int32_t *depth, int32_t trees, float base) {
  Forest *forests[] = {&s->residual, &s->spread, &s->fine};
  forests[which]->set(nodes, values, first, depth, trees, base);
  s->cache.clear();
}

void nestor_cost_calibrate(Session *s, float machine, float factor, float trust) {
  s->machine = machine, s->factor = factor, s->trust = trust;
  s->cache.clear();
}

// Sets the FormStatus of the first `count` forms; the others are untrained. Forms that are added to
// those before change no answer that was given.
void nestor_cost_form_statuses(Session *s, const int8_t *statuses, int64_t count) {
  size_t before = s->forms.size();
  bool added = before <= size_t(count) && std::equal(s->forms.begin(), s->forms.end(), statuses);
  s->forms.assign(statuses, statuses + count);
  if (!added) s->cache.clear();
}

// Sets the levels that answers move to, rising, whether the fine trees order the blocks of each, how far
// answers move at most, and what the fine trees' answers are rounded to.
void nestor_cost_levels(Session *s, const float *levels, const uint8_t *ordered, int64_t count,
                        float reach, float grain) {
  s->levels.assign(levels, levels + count), s->ordered.assign(ordered, ordered + count);
  s->reach = reach, s->grain = grain;
  s->cache.clear();
}

// Predicts n blocks. status: 0 done, 1 needs a template (as nestor_cost_keep), 2 undecodable.
// Returns the number of blocks that are not done.
int64_t nestor_cost_predict(Session *s, const uint8_t *bytes, const int64_t *offsets, int64_t n,
                            int8_t *status, int32_t *where, uint64_t *keys, Answer *answers) {
  Batch batch{*s, answers, {}, {}, {}, {}};
  std::vector<Op> ops;
  int64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t *block = bytes + offsets[i];
    int size = int(offsets[i + 1] - offsets[i]);
    Fingerprint print = fingerprint(block, size);
    auto cached = s->cache.find(print);
    status[i] = 0;
    if (cached != s->cache.end()) {
      batch.answers[i] = cached->second;
      continue;
    }
    auto result = s->decoder.decode(block, size, ops, &where[i], &keys[i]);
    status[i] = int8_t(result);
    if (result != Decoded) {
      batch.answers[i] = {NAN, NAN, NAN, 0, 0, 0, 0};
      ++bad;
      continue;
    }
    batch.add(i, print, ops, size);
  }
  batch.flush();
  return bad;
}

// The residual of n rows of AllFeatures floats, as prediction computes it.
void nestor_cost_residuals(Session *s, const float *rows, int64_t n, float *out) {
  for (int64_t i = 0; i < n; i += Lanes) {
    int count = int(std::min<int64_t>(Lanes, n - i));
    uint8_t bins[AllFeatures * Lanes] = {};
    s->bins.apply(rows + i * AllFeatures, AllFeatures, count, bins);
    s->residual.evaluate(bins, count, out + i);
  }
}

void nestor_cost_forget_answers(Session *s) { s->cache.clear(); }

// Features of kept blocks with what the memory says, AllFeatures floats each.
void nestor_cost_features(Session *s, const int64_t *which, int64_t n, float *out) {
  for (int64_t i = 0; i < n; ++i) {
    size_t b = size_t(which[i]);
    std::fill(out + i * AllFeatures, out + (i + 1) * AllFeatures, 0.0f);
    if (!s->blocks[b].empty()) featuresOf(*s, s->blocks[b], s->sizes[b], out + i * AllFeatures);
  }
}

// Only the memory's part, for the folds of training: MemoryFeatures floats each.
void nestor_cost_recall(Session *s, const int64_t *which, int64_t n, float *out) {
  for (int64_t i = 0; i < n; ++i) {
    keysOf(s->blocks[size_t(which[i])], s->keys);
    BlockMemory remembered = s->memory.recall(s->keys);
    std::memcpy(out + i * MemoryFeatures, &remembered, sizeof remembered);
  }
}

// Remembers the residuals of kept blocks, in place of what was remembered before.
void nestor_cost_remember(Session *s, const int64_t *which, const float *residuals, int64_t n) {
  s->memory.clear();
  for (int64_t i = 0; i < n; ++i) {
    keysOf(s->blocks[size_t(which[i])], s->keys);
    s->memory.add(s->keys, residuals[i]);
  }
}

// The memory's entries, by key; returns how many there are and writes at most `room`.
int64_t nestor_cost_memory(Session *s, uint32_t *keys, float *sums, uint32_t *counts, int64_t room) {
  auto entries = s->memory.entries();
  for (size_t i = 0; i < entries.size() && int64_t(i) < room; ++i)
    keys[i] = entries[i].key, sums[i] = entries[i].sum, counts[i] = entries[i].count;
  return int64_t(entries.size());
}

void nestor_cost_set_memory(Session *s, const uint32_t *keys, const float *sums,
                            const uint32_t *counts, int64_t n) {
  s->memory.clear();
  for (int64_t i = 0; i < n; ++i)
    if (counts[i]) s->memory.put({keys[i], sums[i], counts[i]});
  s->cache.clear();
}

}  // extern "C"
#pragma GCC visibility pop
