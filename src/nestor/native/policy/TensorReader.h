//===- TensorReader.h - Takes tensors by name, type and shape -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TENSORREADER_H
#define NESTOR_TENSORREADER_H

#include "SafeTensors.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace nestor {

/// The elements of a tensor, where the file has them.
template <typename T> class Column {
public:
  explicit Column(llvm::ArrayRef<char> Bytes) : Bytes(Bytes) {}

  size_t size() const { return Bytes.size() / sizeof(T); }
  T operator[](size_t I) const {
    return llvm::support::endian::read<T, llvm::endianness::little>(Bytes.data() +
                                                                    I * sizeof(T));
  }

private:
  llvm::ArrayRef<char> Bytes;
};

/// Takes the tensors that a policy's kind has; says whether there are others.
class TensorReader {
public:
  explicit TensorReader(const SafeTensors &File) : File(File) {}

  bool has(llvm::StringRef Name) const { return File.Tensors.contains(Name); }

  const Tensor *find(llvm::StringRef Name) const {
    auto It = File.Tensors.find(Name);
    return It == File.Tensors.end() ? nullptr : &It->second;
  }

  /// The elements of \p Name, which must have type \p Type and \p Rank
  /// dimensions, all finite. \p Shape receives the dimensions.
  template <typename T>
  llvm::Expected<std::vector<T>> take(const llvm::Twine &NameTwine, DType Type,
                                      unsigned Rank,
                                      std::vector<uint64_t> &Shape) {
    llvm::Expected<Column<T>> Found = view<T>(NameTwine, Type, Rank, Shape);
    if (!Found)
      return Found.takeError();
    std::vector<T> Elements(Found->size());
    for (size_t I = 0; I < Elements.size(); ++I)
      Elements[I] = (*Found)[I];
    return Elements;
  }

  /// As take(), without a copy: valid as long as the file is.
  template <typename T>
  llvm::Expected<Column<T>> view(const llvm::Twine &NameTwine, DType Type,
                                 unsigned Rank, std::vector<uint64_t> &Shape) {
    std::string Name = NameTwine.str();
    const Tensor *Found = find(Name);
    if (!Found)
      return bad(Name, "is missing");
    if (Found->Type != Type || Found->Shape.size() != Rank)
      return bad(Name, "has the wrong type or rank");
    Taken.insert(Name);
    Shape = Found->Shape;
    Column<T> Elements(Found->Bytes);
    if constexpr (std::is_floating_point_v<T>) {
      bool Finite = true; // Without an early end the compiler vectorises the loop.
      for (size_t I = 0; I < Elements.size(); ++I)
        Finite &= std::abs(Elements[I]) <= std::numeric_limits<T>::max();
      if (!Finite)
        return bad(Name, "holds NaN or infinity");
    }
    return Elements;
  }

  /// Fails if the file has a tensor that was not taken.
  llvm::Error checkAllTaken() const {
    for (const auto &Entry : File.Tensors)
      if (!Taken.contains(Entry.getKey()))
        return bad(Entry.getKey(), "is not part of this kind");
    return llvm::Error::success();
  }

private:
  static llvm::Error bad(llvm::StringRef Name, llvm::StringRef Why) {
    return llvm::createStringError("tensor '" + Name + "' " + Why);
  }

  const SafeTensors &File;
  llvm::StringSet<> Taken;
};

} // namespace nestor

#endif
