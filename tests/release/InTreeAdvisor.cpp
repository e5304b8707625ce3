// LLVM's own MLInlineAdvisor over a released model, as an LLVM that was built with the model has it:
// a plugin that makes the advisor with ReleaseModeModelRunner.

#include "InlinerSizeModel.h"
#include "llvm/Analysis/InlineModelFeatureMaps.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/Analysis/ReleaseModeModelRunner.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"

using namespace llvm;

static ModuleAnalysisManager *CurrentMAM = nullptr;

static InlineAdvisor *makeAdvisor(Module &M, FunctionAnalysisManager &FAM,
                                  InlineParams Params, InlineContext IC) {
  auto Runner = [&M](const std::vector<TensorSpec> &Features) {
    return std::make_unique<ReleaseModeModelRunner<InlinerSizeModel>>(
        M.getContext(), Features, DecisionName);
  };
  return new MLInlineAdvisor(M, *CurrentMAM, Runner, [](CallBase &) { return false; });
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "in-tree-advisor", "1", [](PassBuilder &PB) {
            PB.registerAnalysisRegistrationCallback([](ModuleAnalysisManager &MAM) {
              CurrentMAM = &MAM;
              MAM.registerPass([] { return PluginInlineAdvisorAnalysis(makeAdvisor); });
            });
          }};
}
