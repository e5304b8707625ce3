//===- EvictionAdvisor.cpp - What the allocator evicts --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "AllocationSession.h"
#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

namespace {
/// Asks the stock heuristic first; a session may choose another candidate.
class EvictionAdvisor final : public RegAllocEvictionAdvisor {
public:
  EvictionAdvisor(const MachineFunction &MF, const RAGreedy &RA,
                  AllocationSession &Session,
                  std::unique_ptr<RegAllocEvictionAdvisor> Describing)
      : RegAllocEvictionAdvisor(MF, RA), Session(Session), Default(MF, RA),
        Describing(std::move(Describing)) {}

private:
  MCRegister
  tryFindEvictionCandidate(const LiveInterval &VirtReg, const AllocationOrder &Order,
                           uint8_t CostPerUseLimit,
                           const SmallVirtRegSet &FixedRegisters) const override {
    const MCRegister Stock = heuristic().tryFindEvictionCandidate(
        VirtReg, Order, CostPerUseLimit, FixedRegisters);
    if (!Session.wantsQuestion()) {
      Session.skipQuestion();
      return Stock;
    }
    MCRegister Chosen = Stock;
    const bool Left =
        Session.question(Stock ? positionOf(VirtReg, Stock) : int(OwnCandidate), [&] {
          Chosen = Describing->tryFindEvictionCandidate(
              VirtReg, Order, CostPerUseLimit, FixedRegisters);
        });
    return Left ? Chosen : Stock;
  }

  bool canEvictHintInterference(const LiveInterval &VirtReg, MCRegister PhysReg,
                                const SmallVirtRegSet &Fixed) const override {
    return heuristic().canEvictHintInterference(VirtReg, PhysReg, Fixed);
  }

  /// DefaultEvictionAdvisor makes its methods private.
  const RegAllocEvictionAdvisor &heuristic() const { return Default; }

  /// Where \p Wanted stands in the order of allocation of \p VirtReg, or -1: first
  /// the hints, then the others (llvm/lib/CodeGen/AllocationOrder.h).
  int positionOf(const LiveInterval &VirtReg, MCRegister Wanted) const {
    const Register Reg = VirtReg.reg();
    const ArrayRef<MCPhysReg> Order = RegClassInfo.getOrder(MRI->getRegClass(Reg));
    SmallVector<MCPhysReg, 16> Hints;
    const bool Hard =
        TRI->getRegAllocationHints(Reg, Order, Hints, MF, VRM, Matrix);
    int Position = 0;
    for (MCPhysReg Hint : Hints) {
      if (Hint == Wanted)
        return Position;
      ++Position;
    }
    if (Hard)
      return -1;
    for (MCPhysReg Other : Order) {
      if (is_contained(Hints, Other))
        continue;
      if (Other == Wanted)
        return Position;
      ++Position;
    }
    return -1;
  }

  AllocationSession &Session;
  const DefaultEvictionAdvisor Default;
  const std::unique_ptr<RegAllocEvictionAdvisor> Describing;
};

class EvictionProvider final : public RegAllocEvictionAdvisorProvider {
public:
  EvictionProvider(LLVMContext &C, std::shared_ptr<AllocationSession> Session)
      : RegAllocEvictionAdvisorProvider(AdvisorMode::Default, C),
        Session(std::move(Session)) {}

  std::unique_ptr<RegAllocEvictionAdvisor>
  getAdvisor(const MachineFunction &MF, const RAGreedy &RA,
             MachineBlockFrequencyInfo *MBFI, MachineLoopInfo *Loops) override {
    Session->begin(MF);
    if (!Session->works())
      return std::make_unique<DefaultEvictionAdvisor>(MF, RA);
    return std::make_unique<EvictionAdvisor>(
        MF, RA, *Session, Session->describingAdvisor(MF, RA, MBFI, Loops));
  }

private:
  const std::shared_ptr<AllocationSession> Session;
};

class EvictionAnalysis final : public RegAllocEvictionAdvisorAnalysisLegacy {
public:
  EvictionAnalysis() : RegAllocEvictionAdvisorAnalysisLegacy(AdvisorMode::Default) {}

private:
  bool doInitialization(Module &M) override {
    Session = AllocationSession::of(M);
    Provider = std::make_unique<EvictionProvider>(M.getContext(), Session);
    return false;
  }
  bool doFinalization(Module &M) override {
    Session->finish();
    return false;
  }
  std::shared_ptr<AllocationSession> Session;
};
} // namespace

Pass *createEvictionAnalysis() { return new EvictionAnalysis; }

} // namespace nestor
