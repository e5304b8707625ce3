//===- AllocationOverridesTest.cpp - The text file of fixed choices -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/regalloc/records/AllocationOverrides.h"
#include "FileBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <doctest/doctest.h>

using namespace llvm;
using namespace nestor;

static std::string text(StringRef Lines) {
  return ("nestor-allocation-overrides 1\n" + Lines).str();
}

TEST_CASE("choices are found by function, and by question") {
  auto O = AllocationOverrides::parse(text("# a comment\n"
                                           "evict 00000000000000aa 3 32\n"
                                           "  evict 00000000000000AA 0 5 # another\n"
                                           "priority 00000000000000aa 7 -1.5\n"
                                           "evict 00000000000000bb 3 0\r\n"
                                           "function 00000000000000cc stock\n"
                                           "module 00000000000000dd stock"));
  REQUIRE(bool(O));
  const AllocationChoices *Choices = O->find(0xaa);
  REQUIRE(Choices);
  CHECK(Choices->Evictions == std::map<unsigned, unsigned>{{0, 5}, {3, 32}});
  CHECK(Choices->Priorities == std::map<unsigned, double>{{7, -1.5}});
  REQUIRE(O->find(0xbb));
  CHECK(O->find(0xbb)->Priorities.empty());
  CHECK(!O->find(0xcc));
  CHECK(O->isStock(0, 0xcc));
  CHECK(O->isStock(0xdd, 0xaa));
  CHECK(!O->isStock(0xcc, 0xaa)); // Modules and functions are different things.
  CHECK(!O->isStock(0, 0xdd));
}

TEST_CASE("every 16 digits are an ID") {
  // The first two are no keys for LLVM's own tables.
  for (const char *ID : {"ffffffffffffffff", "fffffffffffffffe", "0000000000000000"}) {
    CAPTURE(ID);
    const std::string Name = ID;
    uint64_t Key;
    REQUIRE(!StringRef(Name).getAsInteger(16, Key));
    auto O = AllocationOverrides::parse(
        text("evict " + Name + " 1 2\nevict " + Name + " 2 2\npriority " + Name +
             " 1 2\nfunction " + Name + " stock\n"));
    REQUIRE(bool(O));
    REQUIRE(O->find(Key));
    CHECK(O->find(Key)->Evictions.size() == 2);
    CHECK(O->find(Key)->Priorities.size() == 1);
    CHECK(O->isStock(1, Key));
    CHECK(!O->isStock(Key, 1));
    CHECK(!O->find(1));
  }
}

TEST_CASE("whatever else stands in the file is refused with its line") {
  const std::pair<std::string, StringRef> Wrong[] = {
      {"", "first line"},
      {"nestor-overrides 1\n", "line 1"},
      {"nestor-allocation-overrides 2\n", "line 1"},
      {text("\nevict 00000000000000aa 1 33\n"), "line 3"},
      {text("evict 00000000000000aa 1 -1\n"), "line 2"},
      {text("evict 00000000000000aa -1 1\n"), "line 2"},
      {text("evict 00000000000000aa 4294967296 1\n"), "line 2"},
      {text("evict 00000000000000aa 1\n"), "line 2"},
      {text("evict 00000000000000aa 1 2 3\n"), "line 2"},
      {text("evict 00000000000000aa 0x1 2\n"), "line 2"},
      {text("evict 0000000000000aa 1 2\n"), "line 2"},
      {text("evict main 1 2\n"), "line 2"},
      {text("evict 00000000000000aa 1 nan\n"), "line 2"},
      {text("priority 00000000000000aa 1 nan\n"), "line 2"},
      {text("priority 00000000000000aa 1 inf\n"), "line 2"},
      {text("priority 00000000000000aa 1 1e300\n"), "line 2"},
      {text("priority 00000000000000aa 1 -64.5\n"), "line 2"},
      {text("priority 00000000000000aa 1 1 2\n"), "line 2"},
      {text("priority 00000000000000aa one 1\n"), "line 2"},
      {text("function 00000000000000aa\n"), "line 2"},
      {text("function 00000000000000aa keep\n"), "line 2"},
      {text("callee 00000000000000aa stock\n"), "line 2"},
      {text("site 00000000000000aa inline\n"), "line 2"},
      {text("evict 00000000000000aa 1 2\nevict 00000000000000AA 1 3\n"), "twice"},
      {text("priority 00000000000000aa 1 2\npriority 00000000000000aa 1 2\n"), "twice"},
      {text("module 00000000000000aa stock\nmodule 00000000000000aa stock\n"), "twice"},
      {text("function 00000000000000aa stock\nfunction 00000000000000aa stock\n"),
       "twice"},
      {std::string(3, '\0'), "line 1"},
      {text(std::string("evict\0 00000000000000aa 1 2\n", 27)), "line 2"},
  };
  for (const auto &Case : Wrong) {
    CAPTURE(Case.first);
    const std::string Error = errorOf(AllocationOverrides::parse(Case.first));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Case.second));
  }
  CHECK(errorOf(AllocationOverrides::load("/nonexistent/file")) != "");
  CHECK(errorOf(AllocationOverrides::load("/")) != "");
}

TEST_CASE("a file of choices beyond 16 MiB is refused for its size") {
  int FD;
  SmallString<128> Path;
  REQUIRE(!sys::fs::createTemporaryFile("nestor", "overrides", FD, Path));
  FileRemover Remover(Path);
  REQUIRE(!sys::fs::resize_file(FD, (size_t(16) << 20) + 1));
  CHECK(errorOf(AllocationOverrides::load(Path)) == "the file is larger than 16 MiB");
  sys::fs::file_t File = sys::fs::convertFDToNativeFile(FD);
  REQUIRE(!sys::fs::closeFile(File));
}
