//===- Plugin.cpp - Where LLVM meets Nestor -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/Compat.h"
#include "plugin/core/Options.h"
#include "plugin/functions/FunctionLog.h"
#include "plugin/inlining/Advisors.h"
#include "plugin/regalloc/PassConstructors.h"
#include "plugin/regalloc/RegallocOptions.h"
#include "llvm-c/Core.h"
#include "llvm/Analysis/InlineAdvisor.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Signals.h"
#include <cstdio>
#include <unistd.h>

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

#if NESTOR_HAS_FUNCTION_LOG
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
#endif

// Ends the compiler with a sentence and status 1, and without a trace of its stack.
[[noreturn]] static void refuse(const char *Why) {
  fprintf(stderr, "nestor: %s\n", Why);
  sys::RunInterruptHandlers(); // Removes the compiler's unfinished files.
  _exit(1);
}

static void registerCallbacks(PassBuilder &PB) {
  // Without a -nestor-… option the compiler is the stock compiler.
  if (nestor::currentRegallocSettings().enabled())
    if (Error E = nestor::replacePassConstructors())
      refuse(toString(std::move(E)).c_str());
  if (!NESTOR_HAS_FUNCTION_LOG && !nestor::currentSettings().FunctionLog.empty())
    refuse("the function log needs LLVM 22, and this is LLVM " LLVM_VERSION_STRING);
  if (!nestor::currentInliningSettings().enabled())
    return;
  PB.registerAnalysisRegistrationCallback([](ModuleAnalysisManager &MAM) {
    CurrentMAM = &MAM;
    MAM.registerPass([] { return PluginInlineAdvisorAnalysis(makeAdvisor); });
  });
}

// Ends a compiler of another LLVM than this plugin was built for, whose classes look
// different. LLVM itself compares versions only after the constructor below.
#if LLVM_VERSION_MAJOR < 20
NESTOR_WEAK("_ZN4llvm27PluginInlineAdvisorAnalysis17HasBeenRegisteredE");
#endif
static void checkVersion() {
  unsigned Major, Minor, Patch;
  LLVMGetVersion(&Major, &Minor, &Patch);
  if (Major == LLVM_VERSION_MAJOR)
    return;
  char Why[256];
  snprintf(Why, sizeof(Why),
           "this plugin is for LLVM " LLVM_VERSION_STRING
           ", and what loads it is LLVM %u.%u.%u: name that compiler to nestor with "
           "--llvm, or use the one that the plugin is for",
           Major, Minor, Patch);
  refuse(Why);
}

// clang 22 loads plugins before it parses -mllvm. lld and older clangs do so afterwards:
// there, -load=<plugin> before the options makes them known (docs/internals/lto.md).
// This is the only global constructor.
__attribute__((constructor)) static void onLoad() {
  checkVersion();
  nestor::registerOptions();
  nestor::registerInliningOptions();
  nestor::registerRegallocOptions();
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "nestor", LLVM_VERSION_STRING,
          registerCallbacks,
#if NESTOR_HAS_FUNCTION_LOG
          beforeCodeGeneration
#endif
  };
}
