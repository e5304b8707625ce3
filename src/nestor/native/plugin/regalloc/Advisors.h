//===- Advisors.h - What the greedy register allocator asks ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_REGALLOCADVISORS_H
#define NESTOR_REGALLOCADVISORS_H

#include "plugin/Compat.h"

// Their identity, name, type and virtual table; LLVM 21 and older keep them to
// themselves.
NESTOR_WEAK("_ZN4llvm37RegAllocEvictionAdvisorAnalysisLegacy2IDE");
NESTOR_WEAK("_ZNK4llvm37RegAllocEvictionAdvisorAnalysisLegacy11getPassNameEv");
NESTOR_WEAK("_ZTIN4llvm37RegAllocEvictionAdvisorAnalysisLegacyE");
NESTOR_WEAK("_ZTVN4llvm37RegAllocEvictionAdvisorAnalysisLegacyE");
NESTOR_WEAK("_ZN4llvm37RegAllocPriorityAdvisorAnalysisLegacy2IDE");
NESTOR_WEAK("_ZNK4llvm37RegAllocPriorityAdvisorAnalysisLegacy11getPassNameEv");
NESTOR_WEAK("_ZTIN4llvm37RegAllocPriorityAdvisorAnalysisLegacyE");
NESTOR_WEAK("_ZTVN4llvm37RegAllocPriorityAdvisorAnalysisLegacyE");

namespace llvm {
class Pass;
} // namespace llvm

namespace nestor {

/// The analyses that give the allocator advisors of the module's session.
llvm::Pass *createEvictionAnalysis();
llvm::Pass *createPriorityAnalysis();

} // namespace nestor

#endif
