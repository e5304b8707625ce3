//===- LogFileTest.cpp - The file that takes a module's log ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/core/LogFile.h"
#include "FileBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <doctest/doctest.h>

using namespace llvm;
using namespace nestor;

namespace {
struct Folder {
  Folder() { REQUIRE(!sys::fs::createUniqueDirectory("nestor-log", Path)); }
  ~Folder() { sys::fs::remove_directories(Path); }
  std::string operator/(StringRef Name) const { return (Path + "/" + Name).str(); }
  SmallString<128> Path;
};
} // namespace

static std::string write(StringRef Path, StringRef Module, StringRef Rest = "") {
  auto OS = openLog(Path, Module);
  if (!OS)
    return toString(OS.takeError());
  **OS << "{\"features\":[]}\n{\"context\":\"" << json::fixUTF8(Module) << "\"}\n"
       << Rest;
  return "";
}

static std::string content(StringRef Path) {
  auto Buffer = MemoryBuffer::getFile(Path);
  REQUIRE(bool(Buffer));
  return (*Buffer)->getBuffer().str();
}

TEST_CASE("a file takes the log of one module, again and again") {
  Folder F;
  const std::string File = F / "x.log";
  CHECK(cantFail(logPath(File, "a.c")) == File);
  CHECK(write(File, "a.c", "a long log") == "");
  CHECK(write(File, "a.c") == "");
  CHECK(content(File) == "{\"features\":[]}\n{\"context\":\"a.c\"}\n");
}

TEST_CASE("a module's name need not be UTF-8") {
  Folder F;
  const std::string File = F / "x.log";
  CHECK(write(File, "caf\xe9.c") == "");
  CHECK(write(File, "caf\xe9.c") == "");
  CHECK(write(File, "other.c") != "");
}

TEST_CASE("the log of another module is left alone, and the error names it") {
  Folder F;
  const std::string File = F / "x.log";
  REQUIRE(write(File, "a.c", "a log") == "");
  const std::string Before = content(File);
  const std::string Error = write(File, "b.c");
  CHECK(StringRef(Error).starts_with("it holds the log of a.c; with a folder"));
  CHECK(content(File) == Before);
}

TEST_CASE("what is no log is written over, as by any compiler") {
  Folder F;
  const std::string File = F / "x.log";
  const std::string Deep = "{}\n" + std::string(500000, '[');
  for (const std::string &Before :
       std::vector<std::string>{"", "text", "one\ntwo\nthree", "{}\n{}\n", "\n[1]\n",
                                "{}\n{\"context\":7}\n", Deep}) {
    std::error_code EC;
    raw_fd_ostream(File, EC) << Before;
    CHECK(write(File, "b.c") == "");
    CHECK(StringRef(content(File)).ends_with("{\"context\":\"b.c\"}\n"));
  }
  CHECK(write("/dev/null", "a.c") == "");
  CHECK(write(F / "none/x.log", "a.c") != "");
}

TEST_CASE("a folder gets a file for each module, whatever their names") {
  Folder F;
  const std::string Logs = F / "new/logs/";
  const std::string One = cantFail(logPath(Logs, "src/a.c"));
  CHECK(sys::fs::is_directory(Logs));
  SmallString<128> Whole("src/a.c");
  REQUIRE(!sys::fs::make_absolute(Whole));
  CHECK(sys::path::filename(One) ==
        "a.c." + utohexstr(xxh3_64bits(Whole), true, 16) + ".log");
  CHECK(cantFail(logPath(Logs, Whole)) == One);
  CHECK(cantFail(logPath(Logs, "lib/a.c")) != One);
  CHECK(cantFail(logPath(F.Path, "a.c")) != F.Path.str());
  const std::string Odd = cantFail(logPath(Logs, "lib x.a(m$.o at 12)"));
  CHECK(sys::path::filename(Odd).starts_with("lib_x.a_m_.o_at_12_."));
  CHECK(write(One, "src/a.c") == "");
  CHECK(write(cantFail(logPath("/dev/null/", "a.c")), "a.c") != "");
}
