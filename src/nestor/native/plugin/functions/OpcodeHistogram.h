//===- OpcodeHistogram.h - Opcodes, and which follow which ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two of the three groups of inputs of the size estimator that LLVM published in
// 2020 (llvm/lib/Analysis/InlineSizeEstimatorAnalysis.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_OPCODEHISTOGRAM_H
#define NESTOR_OPCODEHISTOGRAM_H

#include "llvm/IR/Instruction.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nestor {

class OpcodeHistogram {
public:
  /// Counts the next instruction of the function. Pairs go on from block to block.
  void add(unsigned Number);

  static void appendNames(std::vector<std::string> &Names);
  void appendCounts(std::vector<int64_t> &Counts) const;

private:
#define LAST_OTHER_INST(NUM) static constexpr unsigned LastOpcode = NUM;
#include "llvm/IR/Instruction.def"
  static constexpr unsigned PairCount = 137;
  using PairPlaces =
      std::array<std::array<unsigned char, LastOpcode + 1>, LastOpcode + 1>;
  static const PairPlaces &pairPlaces();

  unsigned Before = 0;
  std::array<int64_t, LastOpcode + 1> Opcodes{};
  std::array<int64_t, PairCount + 1> Pairs{}; ///< The last: all others.
};

} // namespace nestor

#endif
