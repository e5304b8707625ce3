//===- AllocationSettings.cpp - Loads what a session needs ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationSession.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include <cmath>

using namespace llvm;

namespace nestor {

static Error because(StringRef What, StringRef Path, Error E) {
  return createStringError("cannot " + What + " '" + Path +
                           "': " + toString(std::move(E)));
}

/// The option that makes LLVM ask somebody else, if the user gave one.
static const char *rivalOption() {
  for (const char *Name :
       {"regalloc-enable-advisor", "regalloc-enable-priority-advisor"}) {
    const cl::Option *Option = cl::getRegisteredOptions().lookup(Name);
    if (Option && Option->getNumOccurrences())
      return Name;
  }
  return nullptr;
}

Error AllocationSession::load() {
  if (!(S.Temperature > 0) || !std::isfinite(S.Temperature))
    return createStringError("-nestor-temperature must be positive");
  if (const char *Rival = rivalOption())
    return createStringError(Twine("policies about register allocation and -") +
                             Rival + " exclude each other");
  if (!S.Best && !S.Search && (S.Eviction.size() > 1 || S.Priority.size() > 1))
    return createStringError("several policies for the same decision need "
                             "-nestor-best, which keeps the best for each function");
  Expected<DescribingProvider> Described = createDescribingProvider(M.getContext());
  if (!Described)
    return Described.takeError();
  Expected<EvictionTensors> Tensed = EvictionTensors::create(Described->Specs);
  if (!Tensed)
    return createStringError("this LLVM asks about evictions in a way that is not "
                             "supported: " +
                             toString(Tensed.takeError()));
  Stock = std::move(Described->Provider);
  Tensors = Described->Runner;
  Offered = std::move(*Tensed);
  if (Error E = loadPolicies())
    return E;
  if (!S.Overrides.empty()) {
    Expected<AllocationOverrides> Loaded = AllocationOverrides::load(S.Overrides);
    if (!Loaded)
      return because("use the overrides", S.Overrides, Loaded.takeError());
    Overrides = std::move(*Loaded);
  }
  return openLogs();
}

/// The stock compiler, then each policy about evictions alone, each about
/// priorities alone, and each pair of them.
Error AllocationSession::loadPolicies() {
  bool IsPortfolio = false;
  for (const std::string &Path : S.Eviction) {
    if (Path == "default")
      continue;
    auto Loaded = EvictionPolicy::load(Path, *Offered);
    if (!Loaded)
      return because("use the policy", Path, Loaded.takeError());
    IsPortfolio |= Loaded->size() > 1;
    for (EvictionPolicy &Member : *Loaded)
      Evictors.push_back(std::make_unique<EvictionPolicy>(std::move(Member)));
  }
  for (const std::string &Path : S.Priority) {
    if (Path == "default")
      continue;
    auto Loaded = PriorityPolicy::load(Path);
    if (!Loaded)
      return because("use the policy", Path, Loaded.takeError());
    IsPortfolio |= Loaded->size() > 1;
    for (PriorityPolicy &Member : *Loaded)
      Orderers.push_back(std::make_unique<PriorityPolicy>(std::move(Member)));
  }
  if (IsPortfolio && !S.Search)
    S.Best = true; // That is what a portfolio is for.
  Alternatives.push_back({});
  for (const auto &Evict : Evictors)
    Alternatives.push_back({Evict.get(), nullptr});
  for (const auto &Order : Orderers) {
    Alternatives.push_back({nullptr, Order.get()});
    for (const auto &Evict : Evictors)
      Alternatives.push_back({Evict.get(), Order.get()});
  }
  return Error::success();
}

/// Whether two of the logs that were asked for have the same path.
static bool shareFile(ArrayRef<StringRef> Logs) {
  for (size_t I = 0; I < Logs.size(); ++I)
    if (!Logs[I].empty() && is_contained(Logs.drop_front(I + 1), Logs[I]))
      return true;
  return false;
}

Error AllocationSession::openLogs() {
  // The first two are written by now; to open one of them again would empty it.
  if (shareFile({S.Log, S.FunctionLog, S.AllocationLog, S.EvictionLog, S.PriorityLog}))
    return createStringError("the logs of inlining, of functions, of evictions, of "
                             "priorities and of allocations need a file or a folder each");
  if (!S.AllocationLog.empty()) {
    auto Opened = AllocationLog::create(S.AllocationLog, M);
    if (!Opened)
      return because("write the log", S.AllocationLog, Opened.takeError());
    Log = std::move(*Opened);
  }
  if (!S.EvictionLog.empty()) {
    auto Opened =
        EvictionLog::create(S.EvictionLog, M, *Offered, S.LogNames, S.Labels != 0);
    if (!Opened)
      return because("write the log", S.EvictionLog, Opened.takeError());
    EvictionRecords = std::move(*Opened);
  }
  if (!S.PriorityLog.empty()) {
    auto Opened = PriorityLog::create(S.PriorityLog, M, S.LogNames);
    if (!Opened)
      return because("write the log", S.PriorityLog, Opened.takeError());
    PriorityRecords = std::move(*Opened);
  }
  return Error::success();
}

} // namespace nestor
