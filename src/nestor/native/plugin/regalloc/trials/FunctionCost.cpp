//===- FunctionCost.cpp - What an allocated function will execute ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionCost.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include <cmath>

using namespace llvm;

namespace nestor {

FunctionCost costOf(const MachineFunction &MF,
                    const MachineBlockFrequencyInfo &Frequencies) {
  FunctionCost Cost;
  // A profile says nothing of what is hot in a function that did not run in it.
  const auto Entries = MF.getFunction().getEntryCount();
  Cost.Guessed = !Entries || Entries->getCount() == 0;
  const TargetInstrInfo *TII = MF.getSubtarget().getInstrInfo();
  for (const MachineBasicBlock &MBB : MF) {
    const double Often = Frequencies.getBlockFreqRelativeToEntryBlock(&MBB);
    for (const MachineInstr &MI : MBB) {
      if (MI.isMetaInstruction())
        continue;
      const bool Spill = MI.getSpillSize(TII) || MI.getFoldedSpillSize(TII);
      const bool Reload = MI.getRestoreSize(TII) || MI.getFoldedRestoreSize(TII);
      Cost.Flattened += std::sqrt(Often) * (1 + MI.mayLoad() + MI.mayStore());
      Cost.Instructions += Often;
      Cost.Reads += MI.mayLoad() ? Often : 0;
      Cost.Writes += MI.mayStore() ? Often : 0;
      Cost.Spills += Spill ? Often : 0;
      Cost.Reloads += Reload ? Often : 0;
      Cost.Copies += MI.isCopy() ? Often : 0;
      ++Cost.Size;
      Cost.SpillCount += Spill;
      Cost.ReloadCount += Reload;
    }
  }
  return Cost;
}

} // namespace nestor
