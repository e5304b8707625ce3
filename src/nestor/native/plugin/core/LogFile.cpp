//===- LogFile.cpp - The file that takes a module's log -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LogFile.h"
#include "policy/SafeTensors.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace nestor {

/// The columns of a log and its first context fit into this many bytes.
constexpr size_t MaxHeadBytes = size_t(1) << 20;

static Error failed(std::error_code EC) { return createStringError(EC, EC.message()); }

/// \p Name with what a shell might not like replaced.
static std::string plainName(StringRef Name) {
  std::string Plain = Name.take_back(64).str();
  for (char &C : Plain)
    if (!isAlnum(C) && C != '.' && C != '-' && C != '_')
      C = '_';
  return Plain;
}

Expected<std::string> logPath(StringRef Log, StringRef Module) {
  if (!sys::path::is_separator(Log.back()) && !sys::fs::is_directory(Log))
    return Log.str();
  if (std::error_code EC = sys::fs::create_directories(Log))
    return failed(EC);
  // Two folders of a build may each have a main.c.
  SmallString<256> Whole(Module), Path(Log);
  if (std::error_code EC = sys::fs::make_absolute(Whole))
    return failed(EC);
  sys::path::append(Path, plainName(sys::path::filename(Module)) + "." +
                              utohexstr(xxh3_64bits(Whole), /*LowerCase=*/true,
                                        /*Width=*/16) +
                              ".log");
  return Path.str().str();
}

/// The module whose log the open file \p FD holds; empty if it is no log.
static std::string moduleOfLog(int FD) {
  std::string Head(MaxHeadBytes, '\0');
  Expected<size_t> Size = sys::fs::readNativeFileSlice(
      sys::fs::convertFDToNativeFile(FD), MutableArrayRef(&Head[0], Head.size()), 0);
  if (!Size) {
    consumeError(Size.takeError());
    return "";
  }
  // The first line declares the columns; the second is {"context": module}.
  const StringRef Lines = StringRef(Head).take_front(*Size);
  Expected<json::Value> Context =
      parseUntrustedJSON(Lines.split('\n').second.split('\n').first);
  if (!Context) {
    consumeError(Context.takeError());
    return "";
  }
  const json::Object *Object = Context->getAsObject();
  return Object ? Object->getString("context").value_or("").str() : "";
}

Expected<std::unique_ptr<raw_fd_ostream>> openLog(StringRef Path, StringRef Module) {
  int FD;
  if (std::error_code EC = sys::fs::openFileForReadWrite(
          Path, FD, sys::fs::CD_OpenAlways, sys::fs::OF_None))
    return failed(EC);
  auto OS = std::make_unique<raw_fd_ostream>(FD, /*shouldClose=*/true);
  sys::fs::file_status Status;
  if (std::error_code EC = sys::fs::status(FD, Status))
    return failed(EC);
  if (Status.type() != sys::fs::file_type::regular_file)
    return std::move(OS); // A pipe, say.
  (void)sys::fs::lockFile(FD); // Closing unlocks; some file systems have no locks.
  const std::string Other = moduleOfLog(FD);
  if (!Other.empty() && Other != json::fixUTF8(Module))
    return createStringError("it holds the log of " + Other +
                             "; with a folder in its place each module gets a log "
                             "of its own");
  if (std::error_code EC = sys::fs::resize_file(FD, 0))
    return failed(EC);
  return std::move(OS);
}

} // namespace nestor
