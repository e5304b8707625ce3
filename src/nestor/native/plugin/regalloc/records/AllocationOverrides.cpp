//===- AllocationOverrides.cpp - Decisions fixed by function --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationOverrides.h"
#include "plugin/regalloc/EvictionQuestion.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;

namespace nestor {

constexpr size_t MaxOverridesBytes = size_t(16) << 20;
constexpr double LargestAnswer = 64; // Far beyond what 24 bits can be scaled by.

/// Takes the words of one line; returns what is wrong with them, or nothing.
std::string AllocationOverrides::read(ArrayRef<StringRef> Words) {
  const char *Expected =
      "expected 'module|function <16 hexadecimal digits> stock', 'evict <16 "
      "hexadecimal digits of the function> <question> <candidate>' or 'priority "
      "<16 hexadecimal digits of the function> <question> <number>'";
  uint64_t ID;
  if (Words.size() < 3 || !parseID(Words[1], ID))
    return Expected;
  const std::string Twice = ("the " + llvm::join(Words.drop_back(), " ") +
                             " is given twice");
  if (Words.size() == 3 && Words[2] == "stock") {
    if (Words[0] == "module")
      return StockModules.insert(ID).second ? "" : Twice;
    if (Words[0] == "function")
      return StockFunctions.insert(ID).second ? "" : Twice;
    return Expected;
  }
  unsigned Question;
  if (Words.size() != 4 || Words[2].getAsInteger(10, Question))
    return Expected;
  unsigned Candidate;
  if (Words[0] == "evict" && !Words[3].getAsInteger(10, Candidate) &&
      Candidate < MaxCandidates)
    return Choices[ID].Evictions.try_emplace(Question, Candidate).second ? "" : Twice;
  double Answer;
  if (Words[0] == "priority" && !Words[3].getAsDouble(Answer) &&
      std::fabs(Answer) <= LargestAnswer)
    return Choices[ID].Priorities.try_emplace(Question, Answer).second ? "" : Twice;
  return Expected;
}

Expected<AllocationOverrides> AllocationOverrides::parse(StringRef Text) {
  AllocationOverrides Result;
  if (Error E = parseTextFile(Text, "nestor-allocation-overrides 1",
                              [&](ArrayRef<StringRef> Words) {
                                return Result.read(Words);
                              }))
    return E;
  return Result;
}

Expected<AllocationOverrides> AllocationOverrides::load(StringRef Path) {
  auto Buffer = readPlainFile(Path, MaxOverridesBytes);
  if (!Buffer)
    return Buffer.takeError();
  return parse((*Buffer)->getBuffer());
}

} // namespace nestor
