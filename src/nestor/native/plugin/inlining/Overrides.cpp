//===- Overrides.cpp - Decisions fixed by site, callee or module ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace nestor {

/// More than half a million lines; every compile reads them.
constexpr size_t MaxOverridesBytes = size_t(16) << 20;

Expected<Overrides> Overrides::parse(StringRef Text) {
  Overrides Result;
  auto Entry = [&](ArrayRef<StringRef> Words) -> std::string {
    uint64_t Key;
    const StringRef Kind = Words[0], Answer = Words.back();
    const bool OfModule = Kind == "module";
    Table *Lines = Result.tableOf(Kind);
    if (Words.size() != 3 || !parseID(Words[1], Key) || (!OfModule && !Lines) ||
        (OfModule ? Answer != "stock" : Answer != "inline" && Answer != "keep"))
      return "expected 'site|site-only|callee <16 hexadecimal digits> "
             "inline|keep' or 'module <16 hexadecimal digits> stock'";
    const bool New =
        OfModule ? Result.StockModules.insert(Key).second
                 : Lines->try_emplace(Key, Answer == "inline").second;
    return New ? "" : ("the " + Kind + " " + Words[1] + " is given twice").str();
  };
  if (Error E = parseTextFile(Text, "nestor-overrides 1", Entry))
    return E;
  return Result;
}

/// Where the lines of \p Kind are; null if there is no such kind.
Overrides::Table *Overrides::tableOf(StringRef Kind) {
  return StringSwitch<Table *>(Kind)
      .Case("site", &Sites)
      .Case("site-only", &SitesOnly)
      .Case("callee", &Callees)
      .Default(nullptr);
}

Expected<Overrides> Overrides::load(StringRef Path) {
  auto Buffer = readPlainFile(Path, MaxOverridesBytes);
  if (!Buffer)
    return Buffer.takeError();
  return parse((*Buffer)->getBuffer());
}

std::optional<bool> Overrides::lookup(uint64_t Site, ArrayRef<uint64_t> CopyOf,
                                      uint64_t Callee) const {
  auto Find = [](const Table &In, uint64_t Key) -> std::optional<bool> {
    auto It = In.find(Key);
    return It == In.end() ? std::nullopt : std::optional(It->second);
  };
  // From the most to the least specific.
  if (auto Answer = Find(SitesOnly, Site))
    return Answer;
  if (auto Answer = Find(Sites, Site))
    return Answer;
  for (uint64_t Original : CopyOf)
    if (auto Answer = Find(Sites, Original))
      return Answer;
  return Find(Callees, Callee);
}

} // namespace nestor
