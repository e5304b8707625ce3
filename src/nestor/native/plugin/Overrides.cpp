//===- Overrides.cpp - Decisions fixed by site key ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace nestor {

Expected<Overrides> Overrides::parse(StringRef Text) {
  Overrides Result;
  unsigned Number = 0;
  bool SeenHeader = false;
  while (!Text.empty()) {
    StringRef Line;
    std::tie(Line, Text) = Text.split('\n');
    ++Number;
    auto Bad = [&](const Twine &Why) {
      return createStringError("line " + Twine(Number) + ": " + Why);
    };
    SmallVector<StringRef, 4> Words;
    Line.split('#').first.trim().split(Words, ' ', -1, /*KeepEmpty=*/false);
    if (Words.empty())
      continue;
    if (!SeenHeader) {
      if (Words.size() != 2 || Words[0] != "nestor-overrides" ||
          Words[1] != "1")
        return Bad("expected 'nestor-overrides 1'");
      SeenHeader = true;
      continue;
    }
    uint64_t Key;
    if (Words.size() != 3 || Words[0] != "site" || Words[1].size() != 16 ||
        Words[1].getAsInteger(16, Key) ||
        (Words[2] != "inline" && Words[2] != "keep"))
      return Bad("expected 'site <16 hexadecimal digits> inline|keep'");
    if (!Result.Entries.try_emplace(Key, Entry{Words[2] == "inline", false})
             .second)
      return Bad("the site " + Words[1] + " is given twice");
  }
  if (!SeenHeader)
    return createStringError("the first line is not 'nestor-overrides 1'");
  return Result;
}

Expected<Overrides> Overrides::load(StringRef Path) {
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/true);
  if (!Buffer)
    return createStringError(Buffer.getError(), Buffer.getError().message());
  return parse((*Buffer)->getBuffer());
}

std::optional<bool> Overrides::lookup(uint64_t Site) {
  auto It = Entries.find(Site);
  if (It == Entries.end())
    return std::nullopt;
  It->second.Used = true;
  return It->second.Inline;
}

size_t Overrides::countStale() const {
  return llvm::count_if(Entries, [](const auto &E) { return !E.second.Used; });
}

} // namespace nestor
