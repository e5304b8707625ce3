//===- InliningOptions.cpp - What the user asks of the inliner ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InliningOptions.h"
#include "policy/Embedded.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace nestor {

namespace {
struct InliningOptions {
  cl::list<std::string> Policies{
      "nestor-policy", cl::value_desc("file"),
      cl::desc("Nestor: decide by this policy file, or by 'default', the stock "
               "heuristic seen through the plugin; once for each kind of functions")};
  cl::opt<std::string> Overrides{
      "nestor-overrides", cl::value_desc("file"),
      cl::desc("Nestor: decisions by site, callee or module that stand above the policy's")};
  cl::opt<std::string> Program{
      "nestor-program", cl::value_desc("file"),
      cl::desc("Nestor: what the rest of the program does with the functions, "
               "for policies that read it")};
  cl::opt<std::string> Trials{
      "nestor-trials", cl::value_desc("folder"),
      cl::desc("Nestor: keep here what inlining trials come to, for the next compile")};
  cl::opt<std::string> Vocabulary{
      "nestor-vocabulary", cl::value_desc("file"),
      cl::desc("Nestor: offer the embeddings of functions that this vocabulary gives")};
  cl::list<std::string> LogFor{
      "nestor-log-for", cl::value_desc("file"),
      cl::desc("Nestor: log no more than these policies read, which costs less")};
  cl::opt<bool> SeedCallees{
      "nestor-seed-callees",
      cl::desc("Nestor: with a seed, draw one number for all sites of a callee, "
               "which goes away only if all are inlined")};
};
} // namespace

// As in plugin/core/Options.cpp.
static InliningOptions &options() {
  static InliningOptions *const TheOptions = new InliningOptions;
  return *TheOptions;
}

void registerInliningOptions() { options(); }

ArrayRef<InliningProblem> inliningProblems() {
  static const InliningProblem Problems[] = {
      {"inlining-size", "at -Oz", [](const Function &F) { return F.hasMinSize(); }},
      {"inlining-size-os", "at -Os",
       [](const Function &F) { return F.hasOptSize() && !F.hasMinSize(); }},
      {"inlining-speed", "for speed (-O2, -O3)",
       [](const Function &F) { return !F.hasOptSize() && !F.hasOptNone(); }},
  };
  return Problems;
}

InliningSettings currentInliningSettings() {
  InliningOptions &O = options();
  InliningSettings S;
  static_cast<Settings &>(S) = currentSettings();
  S.Policies.assign(O.Policies.begin(), O.Policies.end());
  if (S.Policies.empty() && llvm::any_of(inliningProblems(), [](const InliningProblem &P) {
        return !embeddedPolicy(P.Name).empty();
      }))
    S.Policies = {EmbeddedName.str()};
  S.Overrides = O.Overrides;
  S.Program = O.Program;
  S.Trials = O.Trials;
  S.Vocabulary = O.Vocabulary;
  S.LogFor.assign(O.LogFor.begin(), O.LogFor.end());
  S.SeedCallees = O.SeedCallees;
  return S;
}

} // namespace nestor
