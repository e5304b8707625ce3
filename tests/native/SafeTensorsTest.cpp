//===- SafeTensorsTest.cpp - Sound, truncated and hostile files -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "policy/SafeTensors.h"
#include "FileBuilder.h"
#include <doctest/doctest.h>

using namespace llvm;
using namespace nestor;

static std::string readError(StringRef Header, StringRef Data = "") {
  std::string File = FileBuilder::assemble(Header, Data);
  return errorOf(readSafeTensors(File));
}

static bool contains(StringRef Text, StringRef Part) {
  return Text.contains(Part);
}

TEST_CASE("a sound file gives its tensors and metadata") {
  std::string File = FileBuilder::assemble(
      R"({"__metadata__":{"k":"v"},)"
      R"("b":{"dtype":"I32","shape":[2,1],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
      StringRef("\0\0\x80\x3f\1\0\0\0\2\0\0\0", 12));
  Expected<SafeTensors> Read = readSafeTensors(File);
  REQUIRE(bool(Read));
  CHECK(Read->Metadata.lookup("k") == "v");
  REQUIRE(Read->Tensors.size() == 2);
  const Tensor &B = Read->Tensors.find("b")->second;
  CHECK(B.Type == DType::I32);
  CHECK(B.Shape == std::vector<uint64_t>{2, 1});
  CHECK(B.Bytes.size() == 8);
  CHECK(B.Bytes.data() == File.data() + File.size() - 8);
  CHECK(Read->Tensors.find("a")->second.Bytes.size() == 4);
}

TEST_CASE("no prefix of a sound file is a sound file") {
  for (const FileBuilder &B : {logPolicy(), quantilePolicy(), treesPolicy()}) {
    const std::string File = B.build();
    REQUIRE(errorOf(readSafeTensors(File)) == "");
    for (size_t Size = 0; Size < File.size(); ++Size) {
      // Its own allocation, so that the sanitizer sees a read past the end.
      std::vector<char> Part(File.begin(), File.begin() + Size);
      CHECK(errorOf(readSafeTensors(StringRef(Part.data(), Size))) != "");
    }
    CHECK(errorOf(readSafeTensors(File + "x")) != "");
  }
}

TEST_CASE("the header's length is not believed") {
  std::string File(64, ' ');
  for (uint64_t Length :
       {uint64_t(57), uint64_t(MaxHeaderBytes) + 1, ~uint64_t(0) - 7,
        ~uint64_t(0), uint64_t(1) << 63}) {
    for (unsigned I = 0; I < 8; ++I)
      File[I] = char(Length >> (8 * I));
    CHECK(contains(errorOf(readSafeTensors(File)), "header is larger"));
  }
}

TEST_CASE("nesting is refused before the recursive parser sees it") {
  auto Nested = [](size_t Depth) {
    return std::string(Depth, '[') + std::string(Depth, ']');
  };
  CHECK(errorOf(parseUntrustedJSON(Nested(MaxJSONDepth))) == "");
  CHECK(contains(errorOf(parseUntrustedJSON(Nested(MaxJSONDepth + 1))),
                 "too deeply"));
  CHECK(contains(readError(std::string(MaxHeaderBytes - 8, '[')), "too deeply"));
  // Brackets in strings do not count, and an escaped quote ends no string.
  CHECK(errorOf(parseUntrustedJSON("\"" + std::string(99, '[') + "\"")) == "");
  CHECK(errorOf(parseUntrustedJSON("[\"\\\"" + std::string(99, '[') + "\"]")) ==
        "");
  CHECK(contains(errorOf(parseUntrustedJSON("[\"\\\\\"," + Nested(99) + "]")),
                 "too deeply"));
  // A closing bracket too many does not pay for later ones.
  CHECK(errorOf(parseUntrustedJSON("]]]]" + Nested(20))) != "");
  for (StringRef Odd : {"\"", "\"\\", "{", "", "nul", "\xff"})
    CHECK(errorOf(parseUntrustedJSON(Odd)) != "");
}

TEST_CASE("headers that are not what they should be") {
  for (StringRef Header :
       {"[]", "1", "null", "{", R"({"__metadata__":[]})",
        R"({"__metadata__":{"nestor":1}})", R"({"t":1})", R"({"t":{}})",
        R"({"t":{"dtype":"F16","shape":[0],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":0,"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":[0.5],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":[1e999],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":["0"],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0]}})",
        R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}})",
        R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[-4,-4]}})",
        R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[4,0]}})"}) {
    CAPTURE(Header.str());
    CHECK(readError(Header) != "");
  }
}

TEST_CASE("shapes whose product overflows are refused") {
  for (StringRef Shape :
       {"4294967296,4294967296", "9223372036854775807,9223372036854775807,2",
        "4611686018427387905", "4611686018427387904,4", "1073741824,4294967300",
        "18446744073709551615", "18446744073709551616"}) {
    std::string Header = ("{\"t\":{\"dtype\":\"F32\",\"shape\":[" + Shape +
                          "],\"data_offsets\":[0,4]}}")
                             .str();
    CAPTURE(Header);
    CHECK(readError(Header, "abcd") != "");
  }
  // Nothing times a huge number is nothing, in any order.
  for (StringRef Shape : {"0,9223372036854775807", "16,0,9223372036854775807"})
    CHECK(readError(("{\"t\":{\"dtype\":\"F32\",\"shape\":[" + Shape +
                     "],\"data_offsets\":[0,4]}}")
                        .str(),
                    "abcd") != "");
}

static std::string twoTensors(int A0, int A1, int B0, int B1) {
  auto Entry = [](int Begin, int End) {
    return json::Object{{"dtype", "I32"},
                        {"shape", json::Array{(End - Begin) / 4}},
                        {"data_offsets", json::Array{Begin, End}}};
  };
  return FileBuilder::toText(
      json::Object{{"a", Entry(A0, A1)}, {"b", Entry(B0, B1)}});
}

TEST_CASE("every byte belongs to exactly one tensor") {
  const std::string Data(16, '\0');
  CHECK(readError(twoTensors(0, 8, 8, 16), Data) == "");
  CHECK(readError(twoTensors(8, 16, 0, 8), Data) == "");
  CHECK(readError(twoTensors(0, 0, 0, 16), Data) == "");
  CHECK(contains(readError(twoTensors(0, 8, 4, 16), Data), "overlap"));
  CHECK(contains(readError(twoTensors(0, 16, 0, 16), Data), "overlap"));
  CHECK(contains(readError(twoTensors(0, 4, 8, 16), Data), "gaps"));
  CHECK(contains(readError(twoTensors(4, 8, 8, 16), Data), "gaps"));
  CHECK(contains(readError(twoTensors(0, 4, 4, 8), Data), "follow"));
  CHECK(contains(readError(twoTensors(0, 8, 8, 20), Data), "outside"));
}
