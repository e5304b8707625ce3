//===- Embeddings.h - What the code of a function is like -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IR2Vec's symbolic embedding (VenkataKeerthy et al., ACM TACO 2020; llvm/
// Analysis/IR2Vec.h): the vectors of a function's opcodes, types, operands and
// predicates, added up. LLVM's own embedder makes several vectors of doubles for
// each instruction. The sum is linear, so here the entities are counted, and the
// counts multiplied by a vocabulary of whole numbers: the same in any order, and
// exact as features.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EMBEDDINGS_H
#define NESTOR_EMBEDDINGS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace llvm {
class Function;
}

namespace nestor {

/// A text file:
///
///     nestor-vocabulary 1
///     dimension <N>
///     entity <LLVM's name of it> <N whole numbers, weights multiplied in>
///
/// What it does not name counts nothing.
class Embeddings {
public:
  /// Parses \p Text; fails with the line's number on anything else.
  static llvm::Expected<Embeddings> parse(llvm::StringRef Text);
  static llvm::Expected<Embeddings> load(llvm::StringRef Path);

  size_t dimension() const { return Dimension; }
  /// The embedding of \p F as it is now.
  std::vector<int64_t> of(const llvm::Function &F) const;

private:
  size_t Dimension = 0;
  std::vector<int64_t> Vectors; ///< Of each entity, one after the other.
};

} // namespace nestor

#endif
