//===- FileBuilder.h - Makes policy files, sound ones and hostile ones ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TESTS_FILEBUILDER_H
#define NESTOR_TESTS_FILEBUILDER_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace nestor {

/// Writes a safetensors file. Every part can be replaced by something wrong.
class FileBuilder {
public:
  using Shape = std::vector<int64_t>;
  llvm::json::Object Meta; ///< The 'nestor' metadata.

  template <typename T>
  FileBuilder &tensor(llvm::StringRef Name, llvm::StringRef DType,
                      Shape Dims, const std::vector<T> &Elements) {
    remove(Name);
    std::string Bytes(Elements.size() * sizeof(T), '\0');
    if (!Bytes.empty())
      std::memcpy(Bytes.data(), Elements.data(), Bytes.size());
    Tensors.push_back({Name.str(), DType.str(), std::move(Dims), Bytes});
    return *this;
  }
  FileBuilder &f32(llvm::StringRef Name, Shape Dims,
                   const std::vector<float> &E) {
    return tensor(Name, "F32", std::move(Dims), E);
  }
  FileBuilder &f64(llvm::StringRef Name, const std::vector<double> &E) {
    return tensor(Name, "F64", {int64_t(E.size())}, E);
  }
  FileBuilder &range(const std::vector<double> &LowAndHigh) {
    return tensor("range", "F64", {int64_t(LowAndHigh.size() / 2), 2},
                  LowAndHigh);
  }
  FileBuilder &i32(llvm::StringRef Name, const std::vector<int32_t> &E) {
    return tensor(Name, "I32", {int64_t(E.size())}, E);
  }
  void remove(llvm::StringRef Name) {
    for (size_t I = Tensors.size(); I-- > 0;)
      if (Tensors[I].Name == Name)
        Tensors.erase(Tensors.begin() + I);
  }

  /// The header as an object, for tests that spoil it before assemble().
  llvm::json::Object header() const {
    llvm::json::Object Header;
    Header["__metadata__"] = llvm::json::Object{
        {"nestor", toText(llvm::json::Value(llvm::json::Object(Meta)))}};
    int64_t At = 0;
    for (const Entry &T : Tensors) {
      int64_t End = At + int64_t(T.Bytes.size());
      Header[T.Name] =
          llvm::json::Object{{"dtype", T.DType},
                             {"shape", llvm::json::Array(T.Dims)},
                             {"data_offsets", llvm::json::Array{At, End}}};
      At = End;
    }
    return Header;
  }
  std::string data() const {
    std::string Data;
    for (const Entry &T : Tensors)
      Data += T.Bytes;
    return Data;
  }
  std::string build() const { return assemble(toText(header()), data()); }

  static std::string toText(llvm::json::Value V) {
    std::string Text;
    llvm::raw_string_ostream(Text) << V;
    return Text;
  }
  static std::string assemble(llvm::StringRef Header, llvm::StringRef Data) {
    std::string File(8, '\0');
    uint64_t Length = Header.size();
    for (unsigned I = 0; I < 8; ++I)
      File[I] = char(Length >> (8 * I));
    return File + Header.str() + Data.str();
  }

private:
  struct Entry {
    std::string Name, DType;
    Shape Dims;
    std::string Bytes;
  };
  std::vector<Entry> Tensors;
};

inline llvm::json::Object metadata(llvm::StringRef Kind,
                                   llvm::StringRef Transform,
                                   std::vector<std::string> Features) {
  return llvm::json::Object{
      {"version", 1},           {"problem", "inlining-size"},
      {"kind", Kind},           {"features", llvm::json::Array(Features)},
      {"answers", "decision"},  {"transform", Transform}};
}

/// Features 3 and -3 give z = (2, -8), hidden (2.5, 1) and the logit 1.25.
inline FileBuilder logPolicy() {
  FileBuilder B;
  B.Meta = metadata("mlp", "log", {"a", "b"});
  B.f64("normalise.shift", {1, 0}).f64("normalise.scale", {2, 100});
  B.f32("layer.0.weight", {2, 2}, {3, 0.5, -1, -0.25});
  B.f32("layer.0.bias", {2}, {0.5, 1});
  B.f32("layer.1.weight", {1, 2}, {2, -4}).f32("layer.1.bias", {1}, {0.25});
  return B;
}

/// Three members behind that network's hidden layer; the first is that network.
inline FileBuilder portfolio() {
  FileBuilder B = logPolicy();
  B.Meta["kind"] = "portfolio";
  B.Meta["problem"] = "regalloc-eviction";
  B.Meta["rule"] = "pick";
  B.f32("layer.1.weight", {3, 2}, {2, -4, 0, 1, -1, 0.5});
  return B.f32("layer.1.bias", {3}, {0.25, 0, -3});
}

/// One feature, boundaries 1 2 2 5; outputs (0, w · (z, √z, z²)).
inline FileBuilder quantilePolicy(std::vector<float> W = {1, 0, 0}) {
  FileBuilder B;
  B.Meta = metadata("mlp", "quantile", {"a"});
  B.f32("normalise.boundaries", {1, 4}, {1, 2, 2, 5});
  W.insert(W.begin(), {0, 0, 0});
  B.f32("layer.0.weight", {2, 3}, W).f32("layer.0.bias", {2}, {0, 0});
  return B;
}

/// The same with a mean of 4 and a scale of 0.5; outputs (0, w · (z, √z, z², z-score)).
inline FileBuilder scorePolicy(std::vector<float> W = {1, 0, 0, 1}) {
  FileBuilder B;
  B.Meta = metadata("mlp", "quantile-z-score", {"a"});
  B.f32("normalise.boundaries", {1, 4}, {1, 2, 2, 5});
  B.f32("normalise.mean", {1}, {4}).f32("normalise.scale", {1}, {0.5});
  W.insert(W.begin(), {0, 0, 0, 0});
  B.f32("layer.0.weight", {2, 4}, W).f32("layer.0.bias", {2}, {0, 0});
  return B;
}

/// a <= 10 ? (b <= 2.5 ? 0.125 : 0.25) : -0.75, plus b <= 0.5 ? 4 : 8.
inline FileBuilder treesPolicy() {
  FileBuilder B;
  B.Meta = metadata("trees", "none", {"a", "b"});
  B.i32("tree.root", {0, 5}).i32("tree.feature", {0, 1, -1, -1, -1, 1, -1, -1});
  B.f64("tree.threshold", {10, 2.5, 0, 0, 0, 0.5, 0, 0});
  B.i32("tree.left", {1, 2, 0, 0, 0, 6, 0, 0});
  B.i32("tree.right", {4, 3, 0, 0, 0, 7, 0, 0});
  B.f64("tree.value", {0, 0, 0.125, 0.25, -0.75, 0, 4, 8});
  return B;
}

/// The same, as deviations where a is in [-1, 2] and b is 5.
inline FileBuilder rangedPolicy() {
  FileBuilder B = treesPolicy();
  B.Meta["answers"] = "deviation";
  return B.range({-1, 2, 5, 5});
}

/// The text of \p Result's error; empty if there is none.
template <typename T> std::string errorOf(llvm::Expected<T> Result) {
  return Result ? "" : llvm::toString(Result.takeError());
}

} // namespace nestor

#endif
