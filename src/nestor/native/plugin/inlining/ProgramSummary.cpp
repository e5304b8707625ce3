//===- ProgramSummary.cpp - What one module cannot see of its program -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramSummary.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <optional>

using namespace llvm;

namespace nestor {

/// A count: digits only, and small enough to be exact as a policy's f64 input.
static bool parseCount(StringRef Word, int64_t &Count) {
  Count = 0;
  for (char C : Word) {
    Count = 10 * Count + (C - '0');
    if (!isDigit(C) || Count > int64_t(1) << 53)
      return false;
  }
  return !Word.empty();
}

Expected<ProgramSummary> ProgramSummary::parse(StringRef Text) {
  ProgramSummary Result;
  bool SeenLink = false;
  auto Link = [&](ArrayRef<StringRef> Words) -> std::string {
    auto Mode = Words.size() != 2
                    ? std::nullopt
                    : StringSwitch<std::optional<LinkMode>>(Words[1])
                          .Case("no-gc", LinkMode::KeepsUnused)
                          .Case("gc", LinkMode::DropsUnused)
                          .Case("icf", LinkMode::FoldsIdentical)
                          .Default(std::nullopt);
    if (!Mode || SeenLink)
      return "expected one 'link gc|no-gc|icf'";
    Result.Link = *Mode;
    SeenLink = true;
    return "";
  };
  auto Function = [&](ArrayRef<StringRef> Words) -> std::string {
    uint64_t ID;
    struct Function F;
    if (Words.size() != 7 || Words[0] != "function" || !parseID(Words[1], ID) ||
        !parseCount(Words[2], F.Copies) || !parseCount(Words[3], F.Bytes) ||
        !parseCount(Words[4], F.Calls) || !parseCount(Words[5], F.Users) ||
        !parseCount(Words[6], F.AddressTaken) || F.AddressTaken > 1)
      return "expected 'function <16 hexadecimal digits> <copies> <bytes> "
             "<calls> <users> 0|1'";
    if (!Result.Functions.try_emplace(ID, F).second)
      return ("the function " + Words[1] + " is given twice").str();
    return "";
  };
  Error E = parseTextFile(Text, "nestor-program 1", [&](ArrayRef<StringRef> Words) {
    return Words[0] == "link" ? Link(Words) : Function(Words);
  });
  if (E)
    return E;
  if (!SeenLink)
    return createStringError("there is no line 'link gc|no-gc|icf'");
  return Result;
}

Expected<ProgramSummary> ProgramSummary::load(StringRef Path) {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return Buffer.takeError();
  return parse((*Buffer)->getBuffer());
}

} // namespace nestor
