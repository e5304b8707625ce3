//===- KnownTrials.cpp - What an earlier compile has tried ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownTrials.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace nestor {

/// Another LLVM makes other code.
constexpr StringLiteral Header = "nestor-trials 2 " LLVM_VERSION_STRING;
/// Lines of a file: half a megabyte, which takes milliseconds to read.
constexpr size_t MostKept = 10'000;

static std::string hex(uint64_t Value) {
  return utohexstr(Value, /*LowerCase=*/true, /*Width=*/16);
}

KnownTrials::KnownTrials(StringRef Folder, const Module &M) {
  SmallString<128> Place;
  if (Folder.empty() || sys::fs::current_path(Place) ||
      sys::fs::create_directories(Folder))
    return;
  // Two projects may both have a "main.c".
  Place += '\0';
  Place += M.getModuleIdentifier();
  SmallString<128> File(Folder);
  sys::path::append(File, hex(xxh3_64bits(Place)) + ".trials");
  Path = std::string(File);
  load();
}

KnownTrials::~KnownTrials() {
  if (Path.empty())
    return;
  std::map<Key, Trial> Kept = Used;
  Kept.insert(Earlier.begin(), Earlier.end());
  if (Kept.size() > MostKept && !Used.empty())
    Kept = Used;
  if (Kept != Earlier)
    save(Kept);
}

const KnownTrials::Trial *KnownTrials::find(const Key &K) {
  if (auto It = Used.find(K); It != Used.end())
    return &It->second;
  auto It = Earlier.find(K);
  return It == Earlier.end() ? nullptr : &note(K, It->second);
}

void KnownTrials::load() {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return consumeError(Buffer.takeError());
  Error E = parseTextFile(
      (*Buffer)->getBuffer(), Header, [&](ArrayRef<StringRef> Words) -> std::string {
        Key K;
        Trial T;
        if (Words.size() != 5 || !parseID(Words[0], K.first) ||
            !parseID(Words[1], K.second) || Words[2].getAsInteger(10, T.Apart) ||
            Words[3].getAsInteger(10, T.Saved) || Words[4].getAsInteger(10, T.Compiled) ||
            T.Apart < 0 || T.Saved > T.Apart || T.Compiled < 0)
          return "no trial";
        Earlier[K] = T;
        return "";
      });
  if (!E)
    return;
  Earlier.clear();
  consumeError(std::move(E));
}

/// All or nothing, so that a compile beside this one reads a whole file.
void KnownTrials::save(const std::map<Key, Trial> &Kept) const {
  Expected<sys::fs::TempFile> File = sys::fs::TempFile::create(Path + ".%%%%%%%%");
  if (!File)
    return consumeError(File.takeError());
  raw_fd_ostream Out(File->FD, /*shouldClose=*/false);
  Out << Header << '\n';
  for (const auto &[K, T] : Kept)
    Out << hex(K.first) << ' ' << hex(K.second) << ' ' << T.Apart << ' ' << T.Saved << ' '
        << T.Compiled << '\n';
  Out.flush();
  const bool Failed = Out.has_error();
  Out.clear_error();
  consumeError(Failed ? File->discard() : File->keep(Path));
}

} // namespace nestor
