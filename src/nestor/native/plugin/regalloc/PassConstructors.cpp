//===- PassConstructors.cpp - Gets into the stock pipeline ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PassConstructors.h"
#include "Advisors.h"
#include "AllocationSession.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/RegAllocPriorityAdvisor.h"
#include "llvm/InitializePasses.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace nestor {

static PassInfo::NormalCtor_t StockBranchFolder = nullptr;

namespace {
/// Takes the function's cost, then does what the pass in its place does. Branch
/// folding is the first pass behind register allocation and frame code that the
/// pipeline adds by its ID; it reads the frequencies of blocks anyway.
class CostBeforeBranchFolding final : public FunctionPass {
public:
  explicit CostBeforeBranchFolding(Pass *Stock)
      : FunctionPass(BranchFolderPassID), Stock(static_cast<FunctionPass *>(Stock)) {}

private:
  StringRef getPassName() const override { return Stock->getPassName(); }
  void getAnalysisUsage(AnalysisUsage &AU) const override {
    Stock->getAnalysisUsage(AU);
    AU.addRequired<MachineBlockFrequencyInfoWrapperPass>();
  }
  bool doInitialization(Module &M) override { return Stock->doInitialization(M); }
  bool doFinalization(Module &M) override { return Stock->doFinalization(M); }
  void releaseMemory() override { Stock->releaseMemory(); }

  bool runOnFunction(llvm::Function &F) override {
    AllocationSession *Session = AllocationSession::current();
    auto &MMI = getAnalysis<MachineModuleInfoWrapperPass>().getMMI();
    if (MachineFunction *MF = MMI.getMachineFunction(F); MF && Session)
      Session->allocated(
          *MF, getAnalysis<MachineBlockFrequencyInfoWrapperPass>().getMBFI());
    return runStock(F);
  }

  /// A pass finds its analyses through a resolver that the pass manager fills.
  bool runStock(llvm::Function &F) {
    AnalysisResolver *Own = getResolver();
    AnalysisResolver *Lent = Stock->getResolver();
    if (!Lent) {
      Lent = new AnalysisResolver(Own->getPMDataManager());
      Stock->setResolver(Lent); // Which owns it from here on.
    }
    Lent->clearAnalysisImpls();
    AnalysisUsage Usage;
    Stock->getAnalysisUsage(Usage);
    for (AnalysisID ID : Usage.getRequiredSet())
      if (Pass *Found = Own->findImplPass(ID))
        Lent->addAnalysisImplsPair(ID, Found);
    return Stock->runOnFunction(F);
  }

  const std::unique_ptr<FunctionPass> Stock;
};
} // namespace

static Pass *createBranchFolder() {
  return new CostBeforeBranchFolding(StockBranchFolder());
}

/// Where the registry keeps the pass \p ID; null if it is not registered.
static PassInfo *infoOf(const void *ID) {
  // The registry gives no other way to change a constructor, and its entries are
  // not constant themselves.
  return const_cast<PassInfo *>(PassRegistry::getPassRegistry()->getPassInfo(ID));
}

static bool replaceNow() {
  PassRegistry &Registry = *PassRegistry::getPassRegistry();
  initializeRegAllocEvictionAdvisorAnalysisLegacyPass(Registry);
  initializeRegAllocPriorityAdvisorAnalysisLegacyPass(Registry);
  initializeBranchFolderLegacyPass(Registry);
  PassInfo *Eviction = infoOf(&RegAllocEvictionAdvisorAnalysisLegacy::ID);
  PassInfo *Priority = infoOf(&RegAllocPriorityAdvisorAnalysisLegacy::ID);
  PassInfo *Folder = infoOf(&BranchFolderPassID);
  if (!Eviction || !Priority || !Folder || !Folder->getNormalCtor())
    return false;
  Eviction->setNormalCtor(createEvictionAnalysis);
  Priority->setNormalCtor(createPriorityAnalysis);
  StockBranchFolder = Folder->getNormalCtor();
  Folder->setNormalCtor(createBranchFolder);
  return true;
}

Error replacePassConstructors() {
  static const bool Replaced = replaceNow(); // Once in a process.
  if (Replaced)
    return Error::success();
  return createStringError("this LLVM does not register the passes of its register "
                           "allocator; policies about it need LLVM 22");
}

} // namespace nestor
