// A simulated out-of-order core that runs a block over and over, as the labels were measured.
//
// One pass over the instructions in program order: each is dispatched, waits for what it reads,
// takes the first free slots of its ports, and retires in order. General registers and memory are
// emulated with the start values of the measuring harness, so that addresses, and with them
// store-to-load forwarding, split lines and pages, are those of the measurement.
#pragma once
#include "Decode.h"

#include <cstdint>
#include <vector>

namespace nestor {

// Parameters of one instruction form; Python fits them (nestor/cost/core/fitting.py).
struct FormParameters {
  int32_t slots;         // of the dispatch width
  int32_t latency;       // cycles from the last operand to the result
  int32_t ports, executions;  // bit mask of ports; how often one of them executes it
  int32_t secondPorts, secondExecutions;
  int32_t busy;          // cycles that the first port stays taken
  int32_t loadExtra;     // cycles on top of the machine's load latency
};
static_assert(sizeof(FormParameters) == 8 * 4);

// Parameters of the machine: MachineSettings in nestor/cost/core/parameters.py says what each is.
struct MachineParameters {
  int32_t dispatchWidth, retireWidth, window, loadLatency, vectorLoadLatency, forwardLatency,
      vectorForwardLatency, renamedLatency, partialPenalty, splitLatency, pagePenalty, loadPorts,
      storePorts, commitWidth, entryOps, instructionBudget, renamed, storeQueue, lineCommit,
      indexedForwardLatency, fusesCopies, renamesVectors, renamesExtending, partialConstantPenalty, entryBytes, freeEntries, fineVariants,
      bankReads;
};
static_assert(sizeof(MachineParameters) == 28 * 4);

constexpr int Ports = 32;

// What one simulation saw, per pass through the block.
struct Simulation {
  float cycles;       // the rate over the second half of the copies
  float chain;        // the same with dependences only
  float forwarded, renamed, partial, splits, pageSplits, lines, pages, loads, stores, slots;
  float pressure[Ports];
  int copies;
  int width;  // operations that are dispatched in a cycle
};

class Core {
public:
  MachineParameters machine{};
  std::vector<FormParameters> forms;
  void simulate(const std::vector<Op> &ops, int blockBytes, Simulation &out);
  // Cycles only, for fitting.
  float rate(const std::vector<Op> &ops, int blockBytes);

private:
  struct Store {
    uint64_t granule, address;
    uint64_t value;
    int32_t size, base, index;
    int32_t dataReady, chained, committed;
    uint32_t epoch;
    uint32_t baseVersion;
    bool constant;  // what it stores is an immediate
  };
  static constexpr int Ring = 2048, Stores = 512;
  uint32_t taken[Ring];
  uint16_t readOnce[Ring], readTwice[Ring];  // banks of the cache that loads of a cycle read
  Store stores[Stores];
  uint32_t epoch = 0;
  void run(const std::vector<Op> &ops, int blockBytes, int copies, Simulation &out);
};

}  // namespace nestor
