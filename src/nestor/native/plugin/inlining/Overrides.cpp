//===- Overrides.cpp - Decisions fixed by site, callee or module ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/STLExtras.h"
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
                 : Lines->try_emplace(Key, Overrides::Entry{Answer == "inline", false})
                       .second;
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

std::optional<bool> Overrides::use(Table &In, uint64_t Key) {
  auto It = In.find(Key);
  if (It == In.end())
    return std::nullopt;
  It->second.Used = true;
  return It->second.Inline;
}

std::optional<bool> Overrides::lookup(uint64_t Site, ArrayRef<uint64_t> CopyOf,
                                      uint64_t Callee) {
  // From the least to the most specific. All are looked up: a line that another
  // stands above has matched all the same.
  std::optional<bool> Answer = use(Callees, Callee);
  for (uint64_t Original : llvm::reverse(CopyOf))
    if (std::optional<bool> Of = use(Sites, Original))
      Answer = Of;
  for (Table *Lines : {&Sites, &SitesOnly})
    if (std::optional<bool> Of = use(*Lines, Site))
      Answer = Of;
  return Answer;
}

size_t Overrides::countUnmatched() const {
  size_t Count = 0;
  for (const Table *Lines : {&Sites, &SitesOnly, &Callees})
    Count += llvm::count_if(*Lines, [](const auto &E) { return !E.second.Used; });
  return Count;
}

} // namespace nestor
