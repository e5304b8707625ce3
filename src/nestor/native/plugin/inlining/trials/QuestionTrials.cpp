//===- QuestionTrials.cpp - What is tried for one question ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuestionTrials.h"

using namespace llvm;

namespace nestor {

const InliningTrials::Extent &QuestionTrials::extent(const CallBase &CB,
                                                     function_ref<bool()> GoesAway) {
  if (!Known.Candidate)
    Known.Candidate = Trials && GoesAway() ? Trials->candidate(CB) : InliningTrials::Candidate();
  return Known.Candidate->All;
}

InliningTrials::Result QuestionTrials::ofAllCalls(const CallBase &CB,
                                                  function_ref<bool()> GoesAway) {
  if (!Known.AllCalls && Known.MayTry && extent(CB, GoesAway).Calls)
    Known.AllCalls = Trials->of(*Known.Candidate);
  return Known.AllCalls.value_or(InliningTrials::Result());
}

bool QuestionTrials::canTryInCaller(const CallBase &CB) {
  if (!Known.CanTryInCaller)
    Known.CanTryInCaller = Trials && Trials->canTryInCaller(const_cast<CallBase &>(CB));
  return *Known.CanTryInCaller;
}

InliningTrials::Result QuestionTrials::inCaller(const CallBase &CB) {
  if (!Known.InCaller && Known.MayTry && canTryInCaller(CB))
    Known.InCaller = Trials->inCaller(CB);
  return Known.InCaller.value_or(InliningTrials::Result());
}

} // namespace nestor
