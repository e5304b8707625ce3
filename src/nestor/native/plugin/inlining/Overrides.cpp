//===- Overrides.cpp - Decisions fixed by site, callee or module ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace nestor {

Expected<Overrides> Overrides::parse(StringRef Text) {
  Overrides Result;
  auto Entry = [&](ArrayRef<StringRef> Words) -> std::string {
    uint64_t Key;
    const StringRef Kind = Words[0], Answer = Words.back();
    const bool OfModule = Kind == "module";
    if (Words.size() != 3 || !parseID(Words[1], Key) ||
        (!OfModule && Kind != "site" && Kind != "callee") ||
        (OfModule ? Answer != "stock" : Answer != "inline" && Answer != "keep"))
      return "expected 'site|callee <16 hexadecimal digits> inline|keep' or "
             "'module <16 hexadecimal digits> stock'";
    bool New = OfModule ? Result.StockModules.insert(Key).second
                        : (Kind == "site" ? Result.Sites : Result.Callees)
                              .try_emplace(Key, Overrides::Entry{
                                                    Answer == "inline", false})
                              .second;
    return New ? "" : ("the " + Kind + " " + Words[1] + " is given twice").str();
  };
  if (Error E = parseTextFile(Text, "nestor-overrides 1", Entry))
    return E;
  return Result;
}

Expected<Overrides> Overrides::load(StringRef Path) {
  auto Buffer = readPlainFile(Path);
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

std::optional<bool> Overrides::lookup(uint64_t Site, uint64_t Callee) {
  // Both are looked up, so that a line is not stale because another stands above.
  const std::optional<bool> OfCallee = use(Callees, Callee);
  const std::optional<bool> OfSite = use(Sites, Site);
  return OfSite ? OfSite : OfCallee;
}

size_t Overrides::countStale() const {
  auto Unused = [](const auto &E) { return !E.second.Used; };
  return llvm::count_if(Sites, Unused) + llvm::count_if(Callees, Unused);
}

} // namespace nestor
