//===- KnownSizes.cpp - What an earlier compile has measured --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownSizes.h"
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

/// Another LLVM measures other sizes.
constexpr StringLiteral Header = "nestor-trials 1 " LLVM_VERSION_STRING;

static std::string hex(uint64_t Value) {
  return utohexstr(Value, /*LowerCase=*/true, /*Width=*/16);
}

KnownSizes::KnownSizes(StringRef Folder, const Module &M) {
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

KnownSizes::~KnownSizes() {
  if (!Path.empty() && Used != Earlier)
    save();
}

const KnownSizes::Size *KnownSizes::find(const Key &K) {
  if (auto It = Used.find(K); It != Used.end())
    return &It->second;
  auto It = Earlier.find(K);
  return It == Earlier.end() ? nullptr : &note(K, It->second);
}

void KnownSizes::load() {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return consumeError(Buffer.takeError());
  Error E = parseTextFile(
      (*Buffer)->getBuffer(), Header, [&](ArrayRef<StringRef> Words) -> std::string {
        Key K;
        int64_t Bytes = 0;
        if (Words.size() != 3 || !parseID(Words[0], K.first) ||
            !parseID(Words[1], K.second) ||
            (Words[2] != "none" && (Words[2].getAsInteger(10, Bytes) || Bytes < 0)))
          return "no size";
        Earlier[K] = Words[2] == "none" ? Size() : Size(Bytes);
        return "";
      });
  if (!E)
    return;
  Earlier.clear();
  consumeError(std::move(E));
}

/// All or nothing, so that a compile beside this one reads a whole file.
void KnownSizes::save() const {
  Expected<sys::fs::TempFile> File = sys::fs::TempFile::create(Path + ".%%%%%%%%");
  if (!File)
    return consumeError(File.takeError());
  raw_fd_ostream Out(File->FD, /*shouldClose=*/false);
  Out << Header << '\n';
  for (const auto &[K, Bytes] : Used)
    Out << hex(K.first) << ' ' << hex(K.second) << ' '
        << (Bytes ? std::to_string(*Bytes) : "none") << '\n';
  Out.flush();
  const bool Failed = Out.has_error();
  Out.clear_error();
  consumeError(Failed ? File->discard() : File->keep(Path));
}

} // namespace nestor
