//===- Plugin.cpp - Where LLVM meets Nestor -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/core/Options.h"
#include "plugin/functions/FunctionLog.h"
#include "plugin/inlining/Advisors.h"
#include "plugin/regalloc/PassConstructors.h"
#include "plugin/regalloc/RegallocOptions.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
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
                               nestor::currentInliningSettings())
      .release(); // LLVM takes ownership.
}

// Called with the IR that code generation will see; true: it need not see it.
static bool beforeCodeGeneration(Module &M, TargetMachine &TM, CodeGenFileType,
                                 raw_pwrite_stream &) {
  const nestor::Settings S = nestor::currentSettings();
  if (S.FunctionLog.empty())
    return false;
  if (Error E = nestor::writeFunctionLog(S.FunctionLog, M, TM))
    M.getContext().emitError("nestor: cannot write the function log '" +
                             S.FunctionLog + "': " + toString(std::move(E)));
  return S.NoCode;
}

static void registerCallbacks(PassBuilder &PB) {
  // Without a -nestor-… option the compiler is the stock compiler.
  if (nestor::currentRegallocSettings().enabled())
    if (Error E = nestor::replacePassConstructors())
      report_fatal_error("nestor: " + Twine(toString(std::move(E))), false);
  if (!nestor::currentInliningSettings().enabled())
    return;
  PB.registerAnalysisRegistrationCallback([](ModuleAnalysisManager &MAM) {
    CurrentMAM = &MAM;
    MAM.registerPass([] { return PluginInlineAdvisorAnalysis(makeAdvisor); });
  });
}

// clang loads plugins before it parses -mllvm, lld afterwards: there, -mllvm
// -load=<plugin> before the options makes them known (docs/internals/lto.md).
// This is the only global constructor.
__attribute__((constructor)) static void onLoad() {
  nestor::registerOptions();
  nestor::registerInliningOptions();
  nestor::registerRegallocOptions();
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "nestor", LLVM_VERSION_STRING,
          registerCallbacks, beforeCodeGeneration};
}
