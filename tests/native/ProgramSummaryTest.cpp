//===- ProgramSummaryTest.cpp - The text file about the whole program -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/inlining/ProgramSummary.h"
#include "FileBuilder.h"
#include <doctest/doctest.h>
#include <random>

using namespace llvm;
using namespace nestor;

TEST_CASE("functions are found by id") {
  Expected<ProgramSummary> P = ProgramSummary::parse(
      "# made by hand\n\nnestor-program 1\r\n"
      "function 0123456789abcdef 2 58 7 1 0 # f\n"
      "link icf\n"
      "  function FFFFFFFFFFFFFFFF   1 9007199254740992 0 0 1\n"
      "function fffffffffffffffe 0 0 0 0 0");
  REQUIRE(bool(P));
  CHECK(P->linkMode() == ProgramSummary::LinkMode::FoldsIdentical);
  CHECK(P->size() == 3);
  const ProgramSummary::Function *F = P->find(0x0123456789abcdef);
  REQUIRE(F);
  CHECK(F->Copies == 2);
  CHECK(F->Bytes == 58);
  CHECK(F->Calls == 7);
  CHECK(F->Users == 1);
  CHECK(F->AddressTaken == 0);
  F = P->find(~uint64_t(0));
  REQUIRE(F);
  CHECK(F->Bytes == int64_t(1) << 53);
  CHECK(F->AddressTaken == 1);
  CHECK_FALSE(P->find(0));
}

TEST_CASE("a program without functions is sound") {
  for (auto [Word, Mode] :
       {std::pair("no-gc", ProgramSummary::LinkMode::KeepsUnused),
        std::pair("gc", ProgramSummary::LinkMode::DropsUnused)}) {
    auto P = ProgramSummary::parse(std::string("nestor-program 1\nlink ") + Word);
    REQUIRE(bool(P));
    CHECK(P->linkMode() == Mode);
    CHECK(P->size() == 0);
  }
}

TEST_CASE("any other summary is refused, with the number of the line") {
  const std::string Head = "nestor-program 1\nlink gc\n";
  const std::pair<std::string, StringRef> Wrong[] = {
      {"", "first line"},
      {"nestor-program 2\n", "line 1: expected 'nestor-program 1'"},
      {"nestor-overrides 1\n", "line 1"},
      {"link gc\n", "line 1"},
      {"nestor-program 1\n", "link gc|no-gc|icf"},
      {"nestor-program 1\nlink\n", "line 2"},
      {"nestor-program 1\nlink all\n", "line 2"},
      {"nestor-program 1\nlink gc gc\n", "line 2"},
      {Head + "link gc\n", "line 3"},
      {Head + "module 0123456789abcdef stock\n", "line 3"},
      {Head + "global 0123456789abcdef 1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 1 1 1 1\n", "line 3"},
      {Head + "function 0123456789abcdef 1 1 1 1 0 0\n", "line 3"},
      {Head + "function 0123456789abcdef 1 1 1 1 2\n", "line 3"},
      {Head + "function 0123456789abcdef 1 1 1 1 -1\n", "line 3"},
      {Head + "function 0123456789abcdef -1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef +1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 0x1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 1.5 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 9007199254740993 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 1 99999999999999999999 1 1 0\n",
       "line 3"},
      {Head + "function 0123456789abcde 1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef0 1 1 1 1 0\n", "line 3"},
      {Head + "function -123456789abcdef 1 1 1 1 0\n", "line 3"},
      {Head + "function 0123456789abcdef 1 1 1 1 0\n"
              "function 0123456789ABCDEF 1 1 1 1 0\n",
       "line 4: the function 0123456789ABCDEF is given twice"},
      {std::string(3, '\0'), "line 1"},
  };
  for (const auto &[Text, Why] : Wrong) {
    CAPTURE(Text);
    std::string Error = errorOf(ProgramSummary::parse(Text));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Why));
  }
  for (StringRef Path : {"/nonexistent/file", "/", "/dev/zero"})
    CHECK(errorOf(ProgramSummary::load(Path)) != "");
}

TEST_CASE("no damage to a summary does harm") {
  std::mt19937_64 Random(20260102); // NOLINT: the same damage every time.
  const std::string File = "nestor-program 1\nlink gc\n"
                           "function 0123456789abcdef 2 58 7 1 0\n"
                           "function 0123456789abcdee 1 9 3 0 1\n";
  for (unsigned Round = 0; Round < 3000; ++Round) {
    std::string Damaged = File;
    for (unsigned N = 1 + Random() % 4; N; --N)
      Damaged[Random() % Damaged.size()] = char(Random());
    // On the heap, so that a read past the end is seen.
    std::vector<char> Copy(Damaged.begin(), Damaged.end());
    auto P = ProgramSummary::parse(StringRef(Copy.data(), Copy.size()));
    if (!P)
      CHECK(toString(P.takeError()) != "");
  }
}
