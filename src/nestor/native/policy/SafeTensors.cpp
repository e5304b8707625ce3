//===- SafeTensors.cpp - Reads safetensors files without trusting them ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SafeTensors.h"
#include "PlainFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <optional>

using namespace llvm;

namespace nestor {

static Error bad(const Twine &Why) {
  return createStringError(Why);
}

Expected<json::Value> parseUntrustedJSON(StringRef Text) {
  unsigned Depth = 0;
  bool InString = false;
  for (size_t I = 0; I < Text.size(); ++I) {
    char C = Text[I];
    if (InString) {
      if (C == '\\')
        ++I;
      else if (C == '"')
        InString = false;
    } else if (C == '"') {
      InString = true;
    } else if (C == '{' || C == '[') {
      if (++Depth > MaxJSONDepth)
        return bad("JSON nested too deeply");
    } else if ((C == '}' || C == ']') && Depth) {
      --Depth;
    }
  }
  return json::parse(Text);
}

static std::optional<std::pair<DType, uint64_t>> parseDType(StringRef Name) {
  using Result = std::optional<std::pair<DType, uint64_t>>;
  return StringSwitch<Result>(Name)
      .Case("F32", {{DType::F32, 4}})
      .Case("F64", {{DType::F64, 8}})
      .Case("I32", {{DType::I32, 4}})
      .Default(std::nullopt);
}

/// The non-negative integers of a JSON array, or nothing.
static std::optional<std::vector<uint64_t>> asSizes(const json::Array *Array) {
  if (!Array)
    return std::nullopt;
  std::vector<uint64_t> Sizes;
  for (const json::Value &V : *Array) {
    std::optional<int64_t> N = V.getAsInteger();
    if (!N || *N < 0)
      return std::nullopt;
    Sizes.push_back(*N);
  }
  return Sizes;
}

static Expected<Tensor> readTensor(StringRef Name, const json::Value &Entry,
                                   StringRef Data) {
  const json::Object *O = Entry.getAsObject();
  if (!O)
    return bad("tensor '" + Name + "' is not described by an object");
  auto Type = parseDType(O->getString("dtype").value_or(""));
  if (!Type)
    return bad("tensor '" + Name + "' has an unsupported dtype");
  auto Shape = asSizes(O->getArray("shape"));
  auto Offsets = asSizes(O->getArray("data_offsets"));
  if (!Shape || !Offsets || Offsets->size() != 2)
    return bad("tensor '" + Name + "' has no valid shape and data_offsets");
  uint64_t Elements = 1;
  for (uint64_t Dim : *Shape) {
    if (Dim && Elements > MaxFileBytes / Dim)
      return bad("tensor '" + Name + "' is too large");
    Elements *= Dim;
  }
  uint64_t Begin = (*Offsets)[0], End = (*Offsets)[1];
  if (Begin > End || End > Data.size() ||
      End - Begin != Elements * Type->second)
    return bad("tensor '" + Name + "' lies outside the file or has another "
               "length than its shape");
  StringRef Bytes = Data.slice(Begin, End);
  return Tensor{Type->first, std::move(*Shape),
                ArrayRef<char>(Bytes.data(), Bytes.size())};
}

Expected<SafeTensors> readSafeTensors(StringRef File) {
  if (File.size() > MaxFileBytes)
    return bad("the file is larger than 64 MiB");
  if (File.size() < 8)
    return bad("the file is too short to be a safetensors file");
  uint64_t HeaderBytes = support::endian::read64le(File.data());
  if (HeaderBytes > MaxHeaderBytes || HeaderBytes > File.size() - 8)
    return bad("the header is larger than the file or than 1 MiB");
  Expected<json::Value> Header =
      parseUntrustedJSON(File.substr(8, HeaderBytes));
  if (!Header)
    return bad("the header is not JSON: " + toString(Header.takeError()));
  const json::Object *Entries = Header->getAsObject();
  if (!Entries)
    return bad("the header is not a JSON object");

  SafeTensors Result;
  StringRef Data = File.substr(8 + HeaderBytes);
  std::vector<std::pair<const char *, const char *>> Extents;
  for (const auto &[Key, Value] : *Entries) {
    StringRef Name = Key;
    if (Name == "__metadata__") {
      const json::Object *Metadata = Value.getAsObject();
      if (!Metadata)
        return bad("__metadata__ is not an object");
      for (const auto &[MetaKey, MetaValue] : *Metadata) {
        std::optional<StringRef> Text = MetaValue.getAsString();
        if (!Text)
          return bad("__metadata__ holds something other than strings");
        Result.Metadata[StringRef(MetaKey)] = Text->str();
      }
      continue;
    }
    Expected<Tensor> T = readTensor(Name, Value, Data);
    if (!T)
      return T.takeError();
    Extents.emplace_back(T->Bytes.begin(), T->Bytes.end());
    Result.Tensors.try_emplace(Name, std::move(*T));
  }
  // Every byte belongs to exactly one tensor, as the format demands.
  llvm::sort(Extents);
  const char *Next = Data.begin();
  for (auto [Begin, End] : Extents) {
    if (Begin != Next)
      return bad("tensors overlap or leave gaps");
    Next = End;
  }
  if (Next != Data.end())
    return bad("bytes follow the last tensor");
  return Result;
}

} // namespace nestor
