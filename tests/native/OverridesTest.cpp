//===- OverridesTest.cpp - The text file of fixed decisions ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overrides.h"
#include "FileBuilder.h"
#include <doctest/doctest.h>

using namespace llvm;
using namespace nestor;

TEST_CASE("overrides are looked up by key, and the unused ones are counted") {
  Expected<Overrides> O = Overrides::parse("# first\n\nnestor-overrides 1\r\n"
                                           "site 0123456789abcdef inline\n"
                                           "  site FEDCBA9876543210   keep # x\n"
                                           "site 0000000000000000 keep");
  REQUIRE(bool(O));
  CHECK(O->size() == 3);
  CHECK_FALSE(O->empty());
  CHECK(O->countStale() == 3);
  CHECK(O->lookup(0x0123456789abcdef) == true);
  CHECK(O->lookup(0x0123456789abcdef) == true);
  CHECK(O->countStale() == 2);
  CHECK(O->lookup(0xfedcba9876543210) == false);
  CHECK(O->lookup(1) == std::nullopt);
  CHECK(O->countStale() == 1);
}

TEST_CASE("a file without entries is sound") {
  Expected<Overrides> O = Overrides::parse("nestor-overrides 1\n");
  REQUIRE(bool(O));
  CHECK(O->empty());
  CHECK(O->countStale() == 0);
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
      {StringRef("\0\0\0", 3), "line 1"},
  };
  for (const auto &Case : Wrong) {
    CAPTURE(Case.first.str());
    std::string Error = errorOf(Overrides::parse(Case.first));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Case.second));
  }
  CHECK(errorOf(Overrides::load("/nonexistent/file")) != "");
  CHECK(errorOf(Overrides::load("/")) != "");
}
