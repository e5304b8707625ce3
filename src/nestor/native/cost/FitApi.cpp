// Decoding, keeping and simulating blocks: the C interface of nestor/cost/core/simulator.py.
#include "Session.h"

#include <algorithm>
#include <cmath>

using namespace nestor;

#pragma GCC visibility push(default)
extern "C" {

Session *nestor_cost_new() { return new Session; }
void nestor_cost_free(Session *s) { delete s; }

void nestor_cost_template(Session *s, uint64_t key, const Template *row) {
  s->decoder.add(key, *row);
}

void nestor_cost_machine(Session *s, const MachineParameters *machine, const FormParameters *forms,
                         int64_t count) {
  s->core.machine = *machine;
  s->decoder.fineVariants = machine->fineVariants;
  s->core.forms.assign(forms, forms + count);
}

// Decodes and keeps n blocks, in place of those kept before. status: 0 decoded, 1 an instruction
// at where[i] needs a template under keys[i], 2 undecodable.
int64_t nestor_cost_keep(Session *s, const uint8_t *bytes, const int64_t *offsets, int64_t n,
                         int8_t *status, int32_t *where, uint64_t *keys) {
  s->blocks.assign(size_t(n), {});
  s->sizes.assign(size_t(n), 0);
  int64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    int size = int(offsets[i + 1] - offsets[i]), at = 0;
    auto result = s->decoder.decode(bytes + offsets[i], size, s->blocks[i], &at, &keys[i]);
    s->sizes[i] = size, where[i] = at, status[i] = int8_t(result);
    if (result != Decoded) s->blocks[i].clear(), ++bad;
  }
  return bad;
}

// The forms of kept block i, up to `room`; returns how many there are.
int32_t nestor_cost_forms(Session *s, int64_t i, int32_t *out, int32_t room) {
  const auto &ops = s->blocks[size_t(i)];
  for (int k = 0; k < int(ops.size()) && k < room; ++k) out[k] = ops[k].form;
  return int32_t(ops.size());
}

// The decoded operation k of kept block i, for tests and explanations.
void nestor_cost_op(Session *s, int64_t i, int32_t k, OperationRecord *out) {
  const Op &op = s->blocks[size_t(i)][size_t(k)];
  *out = {op.form, op.length, op.base, op.index, op.zeroIdiom, op.readCount, op.writeCount, {}, {}};
  std::copy(op.reads, op.reads + MostRegisters, out->reads);
  std::copy(op.writes, op.writes + MostRegisters, out->writes);
}

void nestor_cost_rates(Session *s, const int64_t *which, int64_t n, float *out) {
  for (int64_t i = 0; i < n; ++i) {
    size_t b = size_t(which[i]);
    out[i] = s->blocks[b].empty() ? -1.0f : s->core.rate(s->blocks[b], s->sizes[b]);
  }
}

// The summed absolute log error of kept blocks, each at most 1, for fitting. Gives up, and returns
// infinity, when it is sure or likely not to come below `current`'s sum: current[i] is the error of
// block which[i] with the parameters to beat. The errors go to `errors`.
double nestor_cost_loss(Session *s, const int64_t *which, const double *logCycles, int64_t n,
                        const double *current, double *errors) {
  double total = 0, old = 0, bound = 0;
  for (int64_t i = 0; i < n; ++i) bound += current ? current[i] : 1e9;
  for (int64_t i = 0; i < n; ++i) {
    size_t b = size_t(which[i]);
    float rate = s->blocks[b].empty() ? 1.0f : s->core.rate(s->blocks[b], s->sizes[b]);
    errors[i] = std::min(1.0, std::fabs(std::log(std::max(double(rate), 0.05)) - logCycles[i]));
    total += errors[i];
    if (!current) continue;
    old += current[i];
    if (total > bound || (i >= 12 && total > 1.25 * old + 0.25)) return INFINITY;
  }
  return total;
}

void nestor_cost_set_form(Session *s, int64_t form, const FormParameters *row) {
  s->core.forms[size_t(form)] = *row;
}

}  // extern "C"
#pragma GCC visibility pop
