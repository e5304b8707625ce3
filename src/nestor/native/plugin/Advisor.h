//===- Advisor.h - The inline advisor that asks a policy ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ADVISOR_H
#define NESTOR_ADVISOR_H

#include "Options.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include <memory>

namespace nestor {

/// The advisor for \p M as \p S asks for it. Anything that is wrong with the
/// policy, the overrides or the log is reported as an error of the compilation,
/// and the stock advisor is returned.
std::unique_ptr<llvm::InlineAdvisor>
createAdvisor(llvm::Module &M, llvm::ModuleAnalysisManager &MAM,
              llvm::FunctionAnalysisManager &FAM, llvm::InlineParams Params,
              llvm::InlineContext IC, const Settings &S);

} // namespace nestor

#endif
