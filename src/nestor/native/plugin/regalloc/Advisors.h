//===- Advisors.h - What the greedy register allocator asks ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_REGALLOCADVISORS_H
#define NESTOR_REGALLOCADVISORS_H

namespace llvm {
class Pass;
} // namespace llvm

namespace nestor {

/// The analyses that give the allocator advisors of the module's session.
llvm::Pass *createEvictionAnalysis();
llvm::Pass *createPriorityAnalysis();

} // namespace nestor

#endif
