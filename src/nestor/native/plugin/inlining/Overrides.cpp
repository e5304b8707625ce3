//===- Overrides.cpp - Decisions fixed by site, callee or module ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"

using namespace llvm;

namespace nestor {

/// More than half a million lines; every compile reads them.
constexpr size_t MaxOverridesBytes = size_t(16) << 20;

namespace {
/// What one line says.
struct Line {
  StringRef Kind, Answer;
  uint64_t Key = 0;
  std::optional<uint64_t> Module; ///< The only one that it is about.
};
} // namespace

/// Reads 'KIND KEY ANSWER' or 'KIND KEY in MODULE ANSWER'; none if it is neither.
static std::optional<Line> lineOf(ArrayRef<StringRef> Words) {
  Line L{Words.front(), Words.back(), 0, std::nullopt};
  const bool OfOneModule = Words.size() == 5 && Words[2] == "in";
  if ((Words.size() != 3 && !OfOneModule) || !parseID(Words[1], L.Key))
    return std::nullopt;
  uint64_t Module;
  if (OfOneModule && !parseID(Words[3], Module))
    return std::nullopt;
  if (OfOneModule)
    L.Module = Module;
  const bool OfSite = L.Kind == "site" || L.Kind == "site-only";
  const bool Inlines = L.Answer == "inline" || L.Answer == "keep";
  const bool Known = OfSite ? Inlines
                     : L.Kind == "callee"
                         ? Inlines && !OfOneModule
                         : L.Kind == "module" && !OfOneModule &&
                               (L.Answer == "stock" || L.Answer == "no-summary");
  return Known ? std::optional(L) : std::nullopt;
}

Expected<Overrides> Overrides::parse(StringRef Text, uint64_t Module) {
  Overrides Result;
  auto Entry = [&](ArrayRef<StringRef> Words) -> std::string {
    const std::optional<Line> L = lineOf(Words);
    if (!L)
      return "expected 'site|site-only|callee <16 hexadecimal digits> "
             "inline|keep', 'site|site-only <16 hexadecimal digits> in <16 "
             "hexadecimal digits> inline|keep' or 'module <16 hexadecimal "
             "digits> stock|no-summary'";
    ++Result.Lines;
    bool New = true;
    if (L->Kind == "module") {
      New = Result.Modules.try_emplace(L->Key, L->Answer == "stock").second;
    } else if (!L->Module || *L->Module == Module) {
      Table &In = L->Kind == "callee" ? Result.Callees
                  : L->Kind == "site"
                      ? (L->Module ? Result.SitesHere : Result.Sites)
                      : (L->Module ? Result.SitesOnlyHere : Result.SitesOnly);
      New = In.try_emplace(L->Key, L->Answer == "inline").second;
    }
    return New ? ""
               : ("the " + L->Kind + " " + Words[1] + " is given twice").str();
  };
  if (Error E = parseTextFile(Text, "nestor-overrides 1", Entry))
    return E;
  return Result;
}

Expected<Overrides> Overrides::load(StringRef Path, uint64_t Module) {
  auto Buffer = readPlainFile(Path, MaxOverridesBytes);
  if (!Buffer)
    return Buffer.takeError();
  return parse((*Buffer)->getBuffer(), Module);
}

std::optional<bool> Overrides::lookup(uint64_t Site, ArrayRef<uint64_t> CopyOf,
                                      uint64_t Callee) const {
  auto Find = [](const Table &In, uint64_t Key) -> std::optional<bool> {
    auto It = In.find(Key);
    return It == In.end() ? std::nullopt : std::optional(It->second);
  };
  // From the most to the least specific.
  for (const Table *Only : {&SitesOnlyHere, &SitesOnly})
    if (auto Answer = Find(*Only, Site))
      return Answer;
  auto OfCall = [&](uint64_t Key) {
    auto Here = Find(SitesHere, Key);
    return Here ? Here : Find(Sites, Key);
  };
  if (auto Answer = OfCall(Site))
    return Answer;
  for (uint64_t Original : CopyOf)
    if (auto Answer = OfCall(Original))
      return Answer;
  return Find(Callees, Callee);
}

} // namespace nestor
