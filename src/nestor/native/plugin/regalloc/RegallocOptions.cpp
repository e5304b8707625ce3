//===- RegallocOptions.cpp - What the user asks of the register allocator -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegallocOptions.h"
#include "policy/Embedded.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace nestor {

namespace {
enum class SearchedDecisions { Eviction, Priority, Both };

struct RegallocOptions {
  cl::list<std::string> Eviction{
      "nestor-eviction", cl::value_desc("file"),
      cl::desc("Nestor: evict live ranges by this policy file, or by 'default'; given "
               "several times, they are alternatives for -nestor-best")};
  cl::list<std::string> Priority{
      "nestor-priority", cl::value_desc("file"),
      cl::desc("Nestor: order live ranges by this policy file, or by 'default'; given "
               "several times, they are alternatives for -nestor-best")};
  cl::opt<bool> Best{
      "nestor-best",
      cl::desc("Nestor: allocate each function by the stock heuristics and by the "
               "policies, and keep what will execute least")};
  cl::opt<unsigned> Search{
      "nestor-allocation-search", cl::value_desc("trials"),
      cl::desc("Nestor: search better decisions by this many allocations per function")};
  cl::opt<SearchedDecisions> Searched{
      "nestor-allocation-moves", cl::init(SearchedDecisions::Eviction),
      cl::desc("Nestor: what a search changes"),
      cl::values(clEnumValN(SearchedDecisions::Eviction, "eviction", "what is evicted"),
                 clEnumValN(SearchedDecisions::Priority, "priority",
                            "the order of allocation"),
                 clEnumValN(SearchedDecisions::Both, "both", "either"))};
  cl::opt<unsigned> Labels{
      "nestor-allocation-labels", cl::value_desc("trials"),
      cl::desc("Nestor: log what the other answers to up to this many questions per "
               "function would have cost")};
  cl::opt<std::string> Overrides{
      "nestor-allocation-overrides", cl::value_desc("file"),
      cl::desc("Nestor: decisions by function that stand above the policies'")};
  cl::opt<std::string> EvictionLog{
      "nestor-eviction-log", cl::value_desc("file"),
      cl::desc("Nestor: write the questions about evictions as an LLVM training log; "
               "in a folder, one for each module")};
  cl::opt<std::string> PriorityLog{
      "nestor-priority-log", cl::value_desc("file"),
      cl::desc("Nestor: the same for priorities")};
  cl::opt<std::string> AllocationLog{
      "nestor-allocation-log", cl::value_desc("file"),
      cl::desc("Nestor: write what each allocated function will execute; in a folder, "
               "a log for each module")};
  cl::opt<bool> SeedFunctions{
      "nestor-seed-functions",
      cl::desc("Nestor: with a seed, draw one number for all questions of a function")};
};
} // namespace

// As in plugin/core/Options.cpp.
static RegallocOptions &options() {
  static RegallocOptions *const TheOptions = new RegallocOptions;
  return *TheOptions;
}

void registerRegallocOptions() { options(); }

/// The policies that the user named, or the one that the plugin carries.
static std::vector<std::string> policiesFor(StringRef Problem,
                                            const cl::list<std::string> &Named) {
  if (Named.empty() && !embeddedPolicy(Problem).empty())
    return {EmbeddedName.str()};
  return {Named.begin(), Named.end()};
}

RegallocSettings currentRegallocSettings() {
  RegallocOptions &O = options();
  RegallocSettings S;
  static_cast<Settings &>(S) = currentSettings();
  S.Eviction = policiesFor("regalloc-eviction", O.Eviction);
  S.Priority = policiesFor("regalloc-priority", O.Priority);
  S.Best = O.Best;
  S.Search = O.Search;
  S.SearchPriority = O.Searched != SearchedDecisions::Eviction;
  S.SearchEviction = O.Searched != SearchedDecisions::Priority;
  S.Labels = O.Labels;
  S.Overrides = O.Overrides;
  S.EvictionLog = O.EvictionLog;
  S.PriorityLog = O.PriorityLog;
  S.AllocationLog = O.AllocationLog;
  S.SeedFunctions = O.SeedFunctions;
  return S;
}

} // namespace nestor
