//===- Advisors.h - The two inline advisors that ask a policy -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two advisors give the same answers at different prices. The development
// advisor builds on LLVM's own ML advisor, computes every in-tree feature for
// every site and can write a log of all. The release advisor computes what the
// policy reads and nothing else, and can log what one policy reads; it is what a
// user's build runs.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ADVISORS_H
#define NESTOR_ADVISORS_H

#include "Decider.h"
#include "InliningOptions.h"
#include "SiteFeatures.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include <memory>

namespace nestor {

/// What every advisor is made from.
struct AdvisorContext {
  llvm::Module &M;
  llvm::ModuleAnalysisManager &MAM;
  llvm::FunctionAnalysisManager &FAM;
  llvm::InlineParams Params;
  llvm::InlineContext IC;
};

/// \p Log may be null. \p Names asks for function names in the log's summary.
std::unique_ptr<llvm::InlineAdvisor>
createDevelopmentAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                         std::unique_ptr<TrajectoryLog> Log, bool Names);

/// Whether the release advisor can do what \p D needs and read \p Logged: not
/// tensors that only LLVM's ML advisor can compute.
bool canRelease(const Decider &D, llvm::ArrayRef<size_t> Logged);

/// Only if canRelease(). \p Log may be null; it has the columns \p Logged.
std::unique_ptr<llvm::InlineAdvisor>
createReleaseAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                     std::unique_ptr<TrajectoryLog> Log, std::vector<size_t> Logged);

/// The advisor as \p S asks for it. Anything that is wrong with the policy, the
/// overrides or the log is reported as an error of the compilation, and the
/// stock advisor is returned.
std::unique_ptr<llvm::InlineAdvisor> createAdvisor(const AdvisorContext &C,
                                                   const InliningSettings &S);

/// Whether the user has set the factor by which a module may grow
/// (-ml-advisor-size-increase-threshold).
bool isGrowthCapGiven();

/// The stock heuristic's answer for \p CB: its advice is taken and not followed.
bool stockAnswer(llvm::DefaultInlineAdvisor &Stock, llvm::CallBase &CB);

/// Whether \p CB calls the function that it is in, and is inlined: stock does that where
/// constant arguments end the recursion. It is no question, so a policy that decides
/// alone says no, as LLVM's own advisors do.
bool isInlinedInItself(const Decider &D, llvm::DefaultInlineAdvisor &Stock,
                       llvm::CallBase &CB);

} // namespace nestor

#endif
