//===- PriorityAdvisor.cpp - In which order live ranges are allocated -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "AllocationSession.h"
#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/CodeGen/VirtRegMap.h"
#include "llvm/IR/Module.h"
#include <cmath>

using namespace llvm;

namespace nestor {

namespace {
/// The bits of the stock priority (DefaultPriorityAdvisor in llvm/lib/CodeGen/
/// RegAllocGreedy.cpp).
constexpr unsigned HintBit = 1u << 30, GlobalBit = 1u << 29, LowGlobalBit = 1u << 24;
constexpr unsigned RankMask = (1u << 24) - 1;
constexpr double LargestWeight = 1e30;

class PriorityAdvisor final : public RegAllocPriorityAdvisor {
public:
  PriorityAdvisor(const MachineFunction &MF, const RAGreedy &RA, SlotIndexes *Indexes,
                  AllocationSession &Session)
      : RegAllocPriorityAdvisor(MF, RA, Indexes), Session(Session),
        Default(MF, RA, Indexes) {}

private:
  unsigned getPriority(const LiveInterval &LI) const override {
    // DefaultPriorityAdvisor makes its method private.
    const RegAllocPriorityAdvisor &Heuristic = Default;
    const unsigned Stock = Heuristic.getPriority(LI);
    return Session.priority(Stock, [&] { return describe(LI, Stock); });
  }

  /// In the order of priorityFeatures().
  PriorityInputs describe(const LiveInterval &LI, unsigned Stock) const {
    const unsigned Global =
        RegClassPriorityTrumpsGlobalness ? LowGlobalBit : GlobalBit;
    const double Weight = LI.weight();
    return {double(LI.getSize()),
            double(Stock >> 31), // Not waiting to be split.
            std::isnan(Weight) ? 0 : std::min(Weight, LargestWeight),
            double(Stock & RankMask),
            double((Stock & Global) != 0),
            double((Stock & HintBit) != 0),
            double(!LI.empty() && LIS->intervalIsInOneMBB(LI))};
  }

  AllocationSession &Session;
  const DefaultPriorityAdvisor Default;
};

class PriorityProvider final : public RegAllocPriorityAdvisorProvider {
public:
  explicit PriorityProvider(std::shared_ptr<AllocationSession> Session)
      : RegAllocPriorityAdvisorProvider(AdvisorMode::Default),
        Session(std::move(Session)) {}

  std::unique_ptr<RegAllocPriorityAdvisor>
  getAdvisor(const MachineFunction &MF, const RAGreedy &RA, SlotIndexes &SI) override {
    if (!Session->works())
      return std::make_unique<DefaultPriorityAdvisor>(MF, RA, &SI);
    return std::make_unique<PriorityAdvisor>(MF, RA, &SI, *Session);
  }

private:
  const std::shared_ptr<AllocationSession> Session;
};

class PriorityAnalysis final : public RegAllocPriorityAdvisorAnalysisLegacy {
public:
  PriorityAnalysis() : RegAllocPriorityAdvisorAnalysisLegacy(AdvisorMode::Default) {}

private:
  bool doInitialization(Module &M) override {
    Provider = std::make_unique<PriorityProvider>(AllocationSession::of(M));
    return false;
  }
};
} // namespace

Pass *createPriorityAnalysis() { return new PriorityAnalysis; }

} // namespace nestor
