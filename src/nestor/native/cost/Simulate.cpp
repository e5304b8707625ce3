#include "Simulate.h"

#include "Emulate.h"

#include <algorithm>
#include <cstring>

namespace nestor {
namespace {

constexpr uint64_t CodeStart = 0x5E5E00000000ull + 227;  // where the harness puts the first copy

uint64_t freshMemory(uint64_t address) {
  int shift = int(address & 7) * 8;
  return shift ? PageFilling >> shift | uint64_t(PageFilling) << (64 - shift) : PageFilling;
}

// How many operations start in the aligned `bytes` of code around `address`, where operation `first` is.
int startsIn(const std::vector<Op> &ops, size_t first, uint64_t address, int bytes, bool fuses) {
  uint64_t end = (address | uint64_t(bytes - 1)) + 1;
  int count = 0;
  while (address < end) {
    address += ops[first].length, count += !(fuses && ops[first].fused);
    first = first + 1 == ops.size() ? 0 : first + 1;
  }
  return count;
}

// The 4-byte banks of the first-level cache that hold the data, of 16; bit b is bank b.
uint16_t banksOf(uint64_t address, int size) {
  int first = int(address >> 2) & 15, count = int(((address & 3) + uint64_t(size) + 3) >> 2);
  if (count >= 16) return 0xFFFF;
  uint32_t mask = ((1u << count) - 1) << first;
  return uint16_t(mask | mask >> 16);
}

constexpr uint32_t AnyAlu = 63;
enum Renaming { ByName = 1, ByAddressWithoutIndex = 2, ByAddress = 3 };

bool readsRegister(const Op &op, uint8_t reg) {
  if (op.base == reg || op.index == reg) return true;
  for (int i = 0; i < op.readCount; ++i)
    if (op.reads[i] == reg) return true;
  return false;
}

}  // namespace

void Core::simulate(const std::vector<Op> &ops, int blockBytes, Simulation &out) {
  int n = int(ops.size());
  int copies = std::clamp(machine.instructionBudget / std::max(n, 1), 4, 160);
  run(ops, blockBytes, copies, out);
}

float Core::rate(const std::vector<Op> &ops, int blockBytes) {
  Simulation out;
  simulate(ops, blockBytes, out);
  return out.cycles;
}

void Core::run(const std::vector<Op> &ops, int blockBytes, int copies, Simulation &out) {
  const MachineParameters &m = machine;
  out = {};
  int ready[256] = {}, chained[256] = {};  // with limits, and with dependences only
  int chain = 0, chainAtHalf = 0;
  uint32_t version[16] = {};
  Registers64 file;
  file.reset();
  ++epoch;
  std::memset(taken, 0, sizeof taken);
  std::memset(readOnce, 0, sizeof readOnce), std::memset(readTwice, 0, sizeof readTwice);
  int retired[LargestWindow] = {};
  int window = std::min<int>(m.window, LargestWindow);
  long sequence = 0;
  int dispatch = 0, slotsLeft = m.dispatchWidth, clean = 0;
  int retireCycle = 0, retireLeft = m.retireWidth;
  int commit = 0, commitLeft = m.commitWidth;
  constexpr int QueueMax = 128;
  int queue[QueueMax] = {};
  uint64_t commitLine = ~0ull;
  long storeSequence = 0;
  int queueSize = std::clamp(m.storeQueue, 1, QueueMax);
  const FormParameters plain{1, 1, int32_t(AnyAlu), 1, 0, 0, 1, 0};  // of forms without parameters
  bool stackMoved = false;
  int lineEnd = 0;
  uint64_t codeLine = ~0ull;
  int load[Ports] = {}, loadAtHalf[Ports] = {};
  int half = copies / 2, quarter = copies / 4, counted = 0;
  long early = 0, late = 0;  // summed ends of the copies in the second and the last quarter
  int forwarded = 0, renamed = 0, partial = 0, splits = 0, pageSplits = 0, loads = 0, stored = 0,
      slots = 0, lines = 0, pages = 0;
  uint64_t lineSeen[32] = {}, pageSeen[32] = {};

  auto advance = [&](int to) {
    // All of it, at most: a far step forgets every cycle.
    for (int t = std::max(clean, to - Ring); t < to; ++t)
      taken[t & (Ring - 1)] = readOnce[t & (Ring - 1)] = readTwice[t & (Ring - 1)] = 0;
    clean = std::max(clean, to);
  };
  // The first cycle from `from` on at which a port of `mask` is free; takes it for `busy` cycles.
  auto issue = [&](int from, uint32_t mask, int busy) {
    int t = from;
    if (t - clean >= Ring - 64) return t;  // so far ahead that nothing competes
    int limit = clean + Ring - 1 - busy;
    while (t < limit && !(mask & ~taken[t & (Ring - 1)])) ++t;
    uint32_t open = mask & ~taken[t & (Ring - 1)];
    if (!open) return t;
    // The port that was used least: what can run anywhere leaves the others their own ports.
    int best = __builtin_ctz(open);
    for (uint32_t rest = open & (open - 1); rest; rest &= rest - 1) {
      int port = __builtin_ctz(rest);
      if (load[port] < load[best]) best = port;
    }
    for (int k = 0; k < busy; ++k) taken[(t + k) & (Ring - 1)] |= 1u << best;
    load[best] += busy;
    return t;
  };

  for (int copy = 0; copy < copies; ++copy) {
    if (copy == half) {
      chainAtHalf = chain;
      std::copy(load, load + Ports, loadAtHalf);
      forwarded = renamed = partial = splits = pageSplits = loads = stored = slots = 0;
      lines = pages = 0;
      counted = copies - half;
    }
    uint64_t position = CodeStart + uint64_t(copy) * blockBytes;
    for (const Op &op : ops) {
      const FormParameters &form = size_t(op.form) < forms.size() ? forms[size_t(op.form)] : plain;
      // Front end: a number of slots a cycle. Code of a line that needs more than the free
      // entries of the operation cache enters one entry a cycle.
      int need = op.fused && m.fusesCopies ? 0 : form.slots;
      uint64_t line = (position + uint64_t(op.offset)) / uint64_t(m.entryBytes);
      if (m.entryOps && line != codeLine) {
        codeLine = line;
        if (lineEnd > dispatch) dispatch = lineEnd, slotsLeft = m.dispatchWidth;
        int inLine = startsIn(ops, size_t(&op - ops.data()), position + uint64_t(op.offset), m.entryBytes, m.fusesCopies);
        if (inLine > m.freeEntries * m.entryOps) {
          if (slotsLeft < m.dispatchWidth) ++dispatch, slotsLeft = m.dispatchWidth;
          lineEnd = dispatch + (inLine + m.entryOps - 1) / m.entryOps;
        }
      }
      int wanted = need;
      while (need > slotsLeft) need -= slotsLeft, ++dispatch, slotsLeft = m.dispatchWidth;
      slotsLeft -= need;
      slots += wanted;
      int oldest = retired[sequence % window];
      if (op.store) oldest = std::max(oldest, queue[storeSequence % queueSize]);
      if (oldest > dispatch) dispatch = oldest, slotsLeft = m.dispatchWidth - std::min(need, m.dispatchWidth);
      advance(dispatch);
      int start = dispatch + 1;

      // Pushes and pops move rsp in a stack engine of its own; any other reader of rsp waits for
      // an operation that brings it up to date.
      bool stackOp = op.stack;
      if (stackOp) stackMoved = true;
      else if (stackMoved && readsRegister(op, RSP)) {
        stackMoved = false;
        ready[RSP] = issue(std::max(ready[RSP], start), AnyAlu, 1) + 1;
        ++chained[RSP];
      }
      uint64_t address = 0, loaded = 0;
      int addressReady = start, addressChained = 0, dataChained = 0, dataReady = op.zeroIdiom ? dispatch : start;
      bool memory = op.load || op.store;
      if (memory || op.addressOnly) {
        address = uint64_t(op.displacement);
        if (op.base < 16) address += file.r[op.base], addressReady = std::max(addressReady, ready[op.base]), addressChained = chained[op.base];
        if (op.index < 16) address += file.r[op.index] * op.scale;
        if (op.index != None) {
          addressReady = std::max(addressReady, ready[op.index]);
          addressChained = std::max(addressChained, chained[op.index]);
        }
        if (op.ripRelative) address += position + op.offset + op.length;
      }
      int extra = 0;
      if (memory) {
        int size = std::max<int>(op.memorySize, 1);
        bool split = (address & 63) + size > 64, pageSplit = (address & 4095) + size > 4096;
        splits += split, pageSplits += pageSplit;
        if (split) extra = m.splitLatency;
        if (pageSplit) extra = m.pagePenalty;
        uint64_t line = address >> 6, page = address >> 12;
        if (lineSeen[line & 31] != line) lineSeen[line & 31] = line, ++lines;
        if (pageSeen[page & 31] != page) pageSeen[page & 31] = page, ++pages;
      }
      if (op.load) {
        ++loads;
        int size = std::max<int>(op.memorySize, 1);
        int from = addressReady;
        if (m.bankReads && addressReady - clean < Ring - 64) {
          // The first cycle in which a port is free and no bank has given all the reads it can.
          uint16_t banks = banksOf(address, size);
          const uint16_t *full = m.bankReads == 1 ? readOnce : readTwice;
          int limit = clean + Ring - 2;
          while (from < limit && ((full[from & (Ring - 1)] & banks) || !(uint32_t(m.loadPorts) & ~taken[from & (Ring - 1)])))
            ++from;
          readTwice[from & (Ring - 1)] |= readOnce[from & (Ring - 1)] & banks;
          readOnce[from & (Ring - 1)] |= banks;
        }
        int t = issue(from, uint32_t(m.loadPorts), 1);
        if (extra) t = issue(t, uint32_t(m.loadPorts), 1);
        int latency = (op.vectorLoad ? m.vectorLoadLatency : m.loadLatency) + form.loadExtra + extra;
        int done = t + latency, doneChained = addressChained + latency;
        const Store *hit = &stores[(address >> 3) % Stores];
        bool overlap = hit->epoch == epoch && hit->granule == address >> 3 &&
                       hit->address < address + size && address < hit->address + hit->size;
        if (!overlap && size > 1) {
          const Store *other = &stores[((address + size - 1) >> 3) % Stores];
          if (other->epoch == epoch && other->granule == (address + size - 1) >> 3 &&
              other->address < address + size && address < other->address + other->size)
            hit = other, overlap = true;
        }
        loaded = freshMemory(address);
        if (overlap) {
          bool whole = hit->address <= address && hit->address + hit->size >= address + size;
          if (whole && size <= 8) loaded = hit->value >> 8 * std::min<int>(7, int(address - hit->address));
          else loaded = scramble(hit->value);
          if (hit->committed > t) {
            // By name the register must be the same and unchanged; by address any will do.
            bool sameName = hit->base == op.base && op.base < 16 && hit->index == op.index &&
                            (op.base == RSP || hit->baseVersion == version[op.base]);
            bool seenThrough = m.renamed == ByName ? sameName
                               : m.renamed == ByAddressWithoutIndex ? op.index == None && hit->index == None
                                                                    : m.renamed == ByAddress;
            seenThrough &= hit->address == address && hit->size == size &&
                           (m.renamesVectors || !op.vectorLoad) && (m.renamesExtending || !op.extends);
            if (seenThrough) {
              ++renamed;
              done = std::max(start, hit->dataReady + m.renamedLatency);
              doneChained = hit->chained + m.renamedLatency;
            } else if (whole) {
              ++forwarded;
              int forward = op.vectorLoad ? m.vectorForwardLatency
                            : op.index != None || hit->index != None ? m.indexedForwardLatency
                                                                     : m.forwardLatency;
              done = std::max(done, hit->dataReady + forward);
              doneChained = std::max(doneChained, hit->chained + forward);
            } else {
              ++partial;
              if (!hit->constant) done = std::max(done, hit->committed + m.partialPenalty);
              else if (m.partialConstantPenalty) done = std::max(done, hit->committed + m.partialConstantPenalty);
            }
          }
        }
        dataReady = std::max(dataReady, done), dataChained = doneChained;
      }
      int operands = dataReady;
      for (int i = 0; i < op.readCount; ++i) {
        operands = std::max(operands, ready[op.reads[i]]);
        dataChained = std::max(dataChained, chained[op.reads[i]]);
      }
      if (op.addressOnly) {
        operands = std::max(operands, addressReady);
        dataChained = std::max(dataChained, addressChained);
      }
      dataChained += form.latency;
      chain = std::max(chain, dataChained);
      int at = operands;
      if (form.executions > 0) {
        at = issue(operands, uint32_t(form.ports), form.busy);
        for (int k = 1; k < form.executions; ++k) issue(operands, uint32_t(form.ports), form.busy);
      }
      for (int k = 0; k < form.secondExecutions; ++k) issue(operands, uint32_t(form.secondPorts), 1);
      int done = at + form.latency;
      uint64_t value = emulate(op, file, loaded, address);
      for (int i = 0; i < op.writeCount; ++i) {
        ready[op.writes[i]] = done, chained[op.writes[i]] = dataChained;
        if (op.writes[i] < 16) ++version[op.writes[i]];
      }
      int finished = done;
      if (op.store) {
        ++stored;
        int t = issue(addressReady, uint32_t(m.storePorts), 1);
        finished = std::max(done, t + 1);
      }
      ++sequence;
      if (finished > retireCycle) retireCycle = finished, retireLeft = m.retireWidth;
      retireLeft -= std::min(wanted, m.retireWidth);
      if (retireLeft < 0) ++retireCycle, retireLeft += m.retireWidth;
      retired[(sequence - 1) % window] = retireCycle;
      if (op.store) {
        int size = std::max<int>(op.memorySize, 1);
        // Two stores go to the cache together only if they go to the same line.
        uint64_t line = address >> 6;
        if (retireCycle > commit) commit = retireCycle, commitLeft = m.commitWidth;
        else if (m.lineCommit && line != commitLine) ++commit, commitLeft = m.commitWidth;
        commitLine = line;
        commitLeft -= extra ? 2 : 1;
        if (commitLeft < 0) ++commit, commitLeft += m.commitWidth;
        queue[storeSequence++ % queueSize] = commit;
        for (uint64_t g = address >> 3; g <= (address + size - 1) >> 3; ++g) {
          Store &slot = stores[g % Stores];
          slot = {g, address, value, size, op.base, op.index, done, dataChained, commit, epoch,
                  op.base < 16 ? version[op.base] : 0, bool(op.sourceIsImmediate)};
        }
      }
    }
    if (copy >= half - quarter && copy < half) early += retireCycle;
    if (copy >= copies - quarter) late += retireCycle;
  }
  // Means over a quarter of the copies each, because single ends are whole cycles.
  float ends = float(late - early) / float(std::max(quarter, 1));
  float per = 1.0f / float(std::max(counted, 1));
  out.cycles = ends / float(copies - half);
  out.chain = float(chain - chainAtHalf) * per;
  out.copies = copies, out.width = m.dispatchWidth;
  out.forwarded = forwarded * per, out.renamed = renamed * per, out.partial = partial * per;
  out.splits = splits * per, out.pageSplits = pageSplits * per, out.lines = lines * per;
  out.pages = pages * per, out.loads = loads * per, out.stores = stored * per;
  out.slots = slots * per;
  for (int p = 0; p < Ports; ++p) out.pressure[p] = float(load[p] - loadAtHalf[p]) * per;
}

}  // namespace nestor
