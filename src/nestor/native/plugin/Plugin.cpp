//===- Plugin.cpp - Where LLVM meets Nestor -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "Options.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"

using namespace llvm;

// The factory is a plain function that LLVM calls without the module's analysis
// manager, so the manager is kept from the registration that precedes it. Both
// happen on the thread that owns the manager (thin LTO runs several).
static thread_local ModuleAnalysisManager *CurrentMAM = nullptr;

static InlineAdvisor *makeAdvisor(Module &M, FunctionAnalysisManager &FAM,
                                  InlineParams Params, InlineContext IC) {
  return nestor::createAdvisor({M, *CurrentMAM, FAM, Params, IC},
                               nestor::currentSettings())
      .release(); // LLVM takes ownership.
}

static void registerCallbacks(PassBuilder &PB) {
  if (!nestor::currentSettings().enabled())
    return; // Without a -nestor-… option the compiler is the stock compiler.
  PB.registerAnalysisRegistrationCallback([](ModuleAnalysisManager &MAM) {
    CurrentMAM = &MAM;
    MAM.registerPass([] { return PluginInlineAdvisorAnalysis(makeAdvisor); });
  });
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  nestor::registerOptions();
  return {LLVM_PLUGIN_API_VERSION, "nestor", LLVM_VERSION_STRING,
          registerCallbacks};
}
