//===- AllocationLog.cpp - What each function of a module will execute ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationLog.h"
#include "plugin/core/LogFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <mutex>

using namespace llvm;

namespace nestor {

constexpr int FormatVersion = 1;

Expected<std::unique_ptr<AllocationLog>> AllocationLog::create(StringRef Path,
                                                               const Module &M) {
  // As in TrajectoryLog::create().
  static std::mutex Opening;
  std::lock_guard<std::mutex> Guard(Opening);
  Expected<std::string> File = logPath(Path, M.getModuleIdentifier());
  if (!File)
    return File.takeError();
  Expected<std::unique_ptr<raw_fd_ostream>> OS = openLog(*File, M.getName());
  if (!OS)
    return OS.takeError();
  std::unique_ptr<AllocationLog> Log(new AllocationLog(std::move(*OS)));
  // The second line is as in a training log, which openLog() looks for.
  *Log->OS << "{\"nestor_allocations\":" << FormatVersion << "}\n"
           << json::Value(json::Object{{"context", json::fixUTF8(M.getName())}})
           << '\n';
  Log->OS->flush();
  return Log;
}

static void writeCost(json::OStream &J, const FunctionCost &Cost) {
  J.attribute("instructions", Cost.Instructions);
  J.attribute("reads", Cost.Reads);
  J.attribute("writes", Cost.Writes);
  J.attribute("spills", Cost.Spills);
  J.attribute("reloads", Cost.Reloads);
  J.attribute("copies", Cost.Copies);
  J.attribute("flattened", Cost.Flattened);
  J.attribute("size", Cost.Size);
  J.attribute("spill_count", Cost.SpillCount);
  J.attribute("reload_count", Cost.ReloadCount);
}

template <typename Map>
static void writeChoices(json::OStream &J, StringRef Name, const Map &Choices) {
  if (Choices.empty())
    return;
  J.attributeArray(Name, [&] {
    for (const auto &Choice : Choices)
      J.array([&] {
        J.value(Choice.first);
        J.value(Choice.second);
      });
  });
}

void AllocationLog::write(const Function &F, const AllocationRecord &R) {
  ++Functions;
  json::OStream J(*OS);
  J.object([&] {
    // What the symbol is called in the object: a first byte of 1 is not part of it.
    StringRef Name = GlobalValue::dropLLVMManglingEscape(F.getName());
    J.attribute("function", json::fixUTF8(Name));
    J.attribute("id", utohexstr(R.ID, /*LowerCase=*/true, /*Width=*/16));
    if (auto Entries = F.getEntryCount())
      J.attribute("entries", Entries->getCount());
    J.attribute("questions", R.Done.Questions);
    J.attribute("priorities", R.Done.Priorities);
    J.attribute("deviations", R.Done.Deviations);
    J.attribute("kept", R.Done.Kept);
    J.attribute("alternative", R.Alternative);
    J.attribute("trials", R.Trials);
    J.attributeObject("cost", [&] { writeCost(J, R.Done.Cost); });
    if (R.StockCost)
      J.attributeObject("stock", [&] { writeCost(J, *R.StockCost); });
    if (!R.Tried.empty())
      J.attributeArray("tried", [&] {
        for (double Cost : R.Tried)
          J.value(std::isfinite(Cost) ? json::Value(Cost) : json::Value(nullptr));
      });
    writeChoices(J, "evict", R.Taken.Evictions);
    writeChoices(J, "priority", R.Taken.Priorities);
  });
  J.flush();
  *OS << '\n';
}

Error AllocationLog::finish() {
  *OS << "{\"functions\":" << Functions << "}\n";
  OS->flush();
  if (!OS->has_error())
    return Error::success();
  const std::error_code EC = OS->error();
  OS->clear_error(); // Else its destructor would end the compiler.
  return createStringError(EC, EC.message());
}

} // namespace nestor
