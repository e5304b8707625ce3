//===- OverridesTest.cpp - The text file of fixed decisions ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/inlining/Overrides.h"
#include "FileBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <doctest/doctest.h>

using namespace llvm;
using namespace nestor;

constexpr uint64_t Module = 0x99; ///< The module that the files are read for.

static Expected<Overrides> parse(StringRef Text) {
  return Overrides::parse(Text, Module);
}

static Expected<Overrides> load(StringRef Path) {
  return Overrides::load(Path, Module);
}

TEST_CASE("overrides are looked up by key") {
  Expected<Overrides> O = parse("# first\n\nnestor-overrides 1\r\n"
                                           "site 0123456789abcdef inline\n"
                                           "  site FEDCBA9876543210   keep # x\n"
                                           "site 0000000000000000 keep");
  REQUIRE(bool(O));
  CHECK(O->size() == 3);
  CHECK(O->hasSites());
  CHECK_FALSE(O->hasCallees());
  CHECK(O->lookup(0x0123456789abcdef, {}, 0) == true);
  CHECK(O->lookup(0xfedcba9876543210, {}, 0) == false);
  CHECK(O->lookup(1, {}, 0x0123456789abcdef) == std::nullopt);
}

TEST_CASE("a site stands above its callee, and a module is a thing of its own") {
  Expected<Overrides> O = parse("nestor-overrides 1\n"
                                           "callee 00000000000000cc keep\n"
                                           "module 00000000000000aa stock\n"
                                           "callee 00000000000000dd inline\n"
                                           "site 00000000000000aa inline\n");
  REQUIRE(bool(O));
  CHECK(O->size() == 4);
  CHECK(O->hasSites());
  CHECK(O->hasCallees());
  CHECK(O->isStock(0xaa));
  CHECK_FALSE(O->isStock(0xcc));
  CHECK(O->lookup(0xaa, {}, 0xcc) == true);
  CHECK(O->lookup(0xbb, {}, 0xcc) == false);
  CHECK(O->lookup(0xbb, {}, 0xaa) == std::nullopt);
  CHECK(O->lookup(0xcc, {}, 0xdd) == true);
}

TEST_CASE("a site answers for its copies unless a more specific line does") {
  Expected<Overrides> O = parse("nestor-overrides 1\n"
                                           "callee 00000000000000cc keep\n"
                                           "site 00000000000000a1 inline\n"
                                           "site 00000000000000a2 keep\n"
                                           "site-only 00000000000000a2 inline\n"
                                           "site-only 00000000000000a3 keep\n");
  REQUIRE(bool(O));
  CHECK(O->size() == 5);
  CHECK(O->lookup(0xb1, {0xa1}, 0) == true);
  CHECK(O->lookup(0xb1, {0xff, 0xa1}, 0xcc) == true); // Above the callee, too.
  CHECK(O->lookup(0xb1, {0xff}, 0xcc) == false);
  CHECK(O->lookup(0xb1, {0xa2, 0xa1}, 0) == false); // The nearest.
  CHECK(O->lookup(0xb1, {0xa1, 0xa2}, 0) == true);
  CHECK(O->lookup(0xa2, {0xa1}, 0) == true); // A line for this call alone.
  CHECK(O->lookup(0xa3, {0xa1}, 0xcc) == false);
  CHECK(O->lookup(0xb1, {0xa3}, 0) == std::nullopt);
  Expected<Overrides> Only =
      parse("nestor-overrides 1\nsite-only 00000000000000a3 keep\n");
  REQUIRE(bool(Only));
  CHECK(Only->hasSites());
}

TEST_CASE("a line for one module counts there, above that for all") {
  Expected<Overrides> O =
      parse("nestor-overrides 1\n"
            "site 00000000000000a1 inline\n"
            "site 00000000000000a1 in 0000000000000099 keep\n"
            "site 00000000000000a2 keep\n"
            "site 00000000000000a2 in 0000000000000098 inline\n"
            "site 00000000000000a2 in 0000000000000097 inline\n"
            "site-only 00000000000000a3 keep\n"
            "site-only 00000000000000a3 in 0000000000000099 inline\n"
            "site 00000000000000a4 in 0000000000000099 inline\n");
  REQUIRE(bool(O));
  CHECK(O->size() == 8);
  CHECK(O->lookup(0xa1, {}, 0) == false);
  CHECK(O->lookup(0xa2, {}, 0) == false);
  CHECK(O->lookup(0xa3, {}, 0) == true);
  CHECK(O->lookup(0xb1, {0xa1}, 0) == false); // Copies follow it, too.
  CHECK(O->lookup(0xb1, {0xa4}, 0) == true);
  for (StringRef Kind : {"site", "site-only"}) {
    Expected<Overrides> Only =
        parse(("nestor-overrides 1\n" + Kind +
               " 00000000000000a3 in 0000000000000099 keep\n")
                  .str());
    REQUIRE(bool(Only));
    CHECK(Only->hasSites());
  }
}

TEST_CASE("a file without entries is sound") {
  Expected<Overrides> O = parse("nestor-overrides 1\n");
  REQUIRE(bool(O));
  CHECK_FALSE(O->hasSites());
  CHECK(O->size() == 0);
}

TEST_CASE("anything else is refused, with the number of the line") {
  const std::pair<StringRef, StringRef> Wrong[] = {
      {"", "first line"},
      {"# nothing\n", "first line"},
      {"nestor-overrides 2\n", "line 1"},
      {"nestor-overrides\n", "line 1"},
      {"site 0123456789abcdef inline\n", "line 1"},
      {"nestor-overrides 1\nnestor-overrides 1\n", "line 2"},
      {"nestor-overrides 1\n\nsite 0123456789abcde inline\n", "line 3"},
      {"nestor-overrides 1\nsite 0123456789abcdef0 inline\n", "line 2"},
      {"nestor-overrides 1\nsite 0x23456789abcdef inline\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdeg inline\n", "line 2"},
      {"nestor-overrides 1\nsite -123456789abcdef inline\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef Inline\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef inline twice\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef keep\n"
       "site 0123456789ABCDEF inline\n",
       "twice"},
      {"nestor-overrides 1\nmodule 0123456789abcdef keep\n", "line 2"},
      {"nestor-overrides 1\nmodule 0123456789abcdef\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef stock\n", "line 2"},
      {"nestor-overrides 1\ncallee 0123456789abcdef stock\n", "line 2"},
      {"nestor-overrides 1\ncallee main keep\n", "line 2"},
      {"nestor-overrides 1\nfunction 0123456789abcdef keep\n", "line 2"},
      {"nestor-overrides 1\ncallee 0123456789abcdef keep\n"
       "callee 0123456789abcdef inline\n",
       "twice"},
      {"nestor-overrides 1\nmodule 0123456789abcdef stock\n"
       "module 0123456789abcdef stock\n",
       "twice"},
      {"nestor-overrides 1\nsite-only 0123456789abcdef keep\n"
       "site-only 0123456789ABCDEF keep\n",
       "twice"},
      {"nestor-overrides 1\nsite-only 0123456789abcdef stock\n", "line 2"},
      {"nestor-overrides 1\nsite\t0123456789abcdef keep\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef in keep\n", "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef at 0123456789abcdef keep\n",
       "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef in main.c keep\n", "line 2"},
      {"nestor-overrides 1\ncallee 0123456789abcdef in 0123456789abcdef keep\n",
       "line 2"},
      {"nestor-overrides 1\nmodule 0123456789abcdef in 0123456789abcdef "
       "stock\n",
       "line 2"},
      {"nestor-overrides 1\nsite 0123456789abcdef in 0000000000000099 keep\n"
       "site 0123456789abcdef in 0000000000000099 keep\n",
       "twice"},
      {StringRef("\0\0\0", 3), "line 1"},
  };
  for (const auto &Case : Wrong) {
    CAPTURE(Case.first.str());
    std::string Error = errorOf(parse(Case.first));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Case.second));
  }
  CHECK(errorOf(load("/nonexistent/file")) != "");
  CHECK(errorOf(load("/")) != "");
}

TEST_CASE("a file that no search would write is refused for its size") {
  int FD;
  SmallString<128> Path;
  REQUIRE(!sys::fs::createTemporaryFile("nestor", "overrides", FD, Path));
  FileRemover Remover(Path);
  REQUIRE(!sys::fs::resize_file(FD, (size_t(16) << 20) + 1));
  CHECK(errorOf(load(Path)) == "the file is larger than 16 MiB");
  REQUIRE(!sys::fs::resize_file(FD, size_t(16) << 20));
  CHECK(StringRef(errorOf(load(Path))).contains("line 1"));
  sys::fs::file_t File = sys::fs::convertFDToNativeFile(FD);
  REQUIRE(!sys::fs::closeFile(File));
}
