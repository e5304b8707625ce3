//===- OpcodeHistogram.cpp - Opcodes, and which follow which --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpcodeHistogram.h"
#include "plugin/Compat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace nestor {

// The opcodes' pairs that the authors of the 2020 estimator found important, by
// the numbers of that time.
static constexpr unsigned char Pairs2020[137][2] = {
    {1, 1},   {1, 4},   {1, 5},   {1, 7},   {1, 8},   {1, 9},   {1, 11},
    {1, 12},  {1, 13},  {1, 14},  {1, 18},  {1, 20},  {1, 22},  {1, 24},
    {1, 25},  {1, 26},  {1, 27},  {1, 28},  {1, 29},  {1, 30},  {1, 31},
    {1, 32},  {1, 33},  {1, 34},  {1, 39},  {1, 40},  {1, 42},  {1, 45},
    {2, 1},   {2, 2},   {2, 13},  {2, 28},  {2, 29},  {2, 32},  {2, 33},
    {2, 34},  {2, 38},  {2, 48},  {2, 49},  {2, 53},  {2, 55},  {2, 56},
    {13, 2},  {13, 13}, {13, 26}, {13, 33}, {13, 34}, {13, 56}, {15, 27},
    {28, 2},  {28, 48}, {28, 53}, {29, 2},  {29, 33}, {29, 56}, {31, 31},
    {31, 33}, {31, 34}, {31, 49}, {32, 1},  {32, 2},  {32, 13}, {32, 15},
    {32, 28}, {32, 29}, {32, 32}, {32, 33}, {32, 34}, {32, 39}, {32, 40},
    {32, 48}, {32, 49}, {32, 53}, {32, 56}, {33, 1},  {33, 2},  {33, 32},
    {33, 33}, {33, 34}, {33, 49}, {33, 53}, {33, 56}, {34, 1},  {34, 2},
    {34, 32}, {34, 33}, {34, 34}, {34, 49}, {34, 53}, {34, 56}, {38, 34},
    {39, 57}, {40, 34}, {47, 15}, {47, 49}, {48, 2},  {48, 34}, {48, 56},
    {49, 1},  {49, 2},  {49, 28}, {49, 32}, {49, 33}, {49, 34}, {49, 39},
    {49, 49}, {49, 56}, {53, 1},  {53, 2},  {53, 28}, {53, 34}, {53, 53},
    {53, 57}, {55, 1},  {55, 28}, {55, 34}, {55, 53}, {55, 55}, {55, 56},
    {56, 1},  {56, 2},  {56, 7},  {56, 13}, {56, 32}, {56, 33}, {56, 34},
    {56, 49}, {56, 53}, {56, 56}, {56, 64}, {57, 34}, {57, 56}, {57, 57},
    {64, 1},  {64, 64}, {65, 1},  {65, 65}};

// All opcodes are counted by numbers that have one kind of branch.

static bool isInternal(unsigned Opcode) { // To passes: never in a module.
  return Opcode == withOneBranch(Instruction::UserOp1) ||
         Opcode == withOneBranch(Instruction::UserOp2);
}

/// For each pair of opcodes its place among Pairs2020, or one past them.
const OpcodeHistogram::PairPlaces &OpcodeHistogram::pairPlaces() {
  static_assert(std::size(Pairs2020) == PairCount);
  static const PairPlaces Places = [] {
    PairPlaces Result;
    for (auto &Row : Result)
      Row.fill(PairCount);
    for (unsigned Place = 0; Place < PairCount; ++Place)
      Result[opcodeSince2020(Pairs2020[Place][0])][opcodeSince2020(Pairs2020[Place][1])] = Place;
    return Result;
  }();
  return Places;
}

void OpcodeHistogram::add(unsigned Number) {
  const unsigned Opcode = withOneBranch(Number);
  ++Opcodes[Opcode];
  ++Pairs[pairPlaces()[Before][Opcode]];
  Before = Opcode;
}

void OpcodeHistogram::appendNames(std::vector<std::string> &Names) {
  auto Name = [](unsigned Opcode) {
    return StringRef(Instruction::getOpcodeName(withTwoBranches(Opcode))).lower();
  };
  for (unsigned Opcode = 1; Opcode <= withOneBranch(LastOpcode); ++Opcode)
    if (!isInternal(Opcode))
      Names.push_back("opcode_" + Name(Opcode));
  for (const auto &Pair : Pairs2020)
    Names.push_back("pair_" + Name(opcodeSince2020(Pair[0])) + "_" + Name(opcodeSince2020(Pair[1])));
}

void OpcodeHistogram::appendCounts(std::vector<int64_t> &Counts) const {
  for (unsigned Opcode = 1; Opcode <= withOneBranch(LastOpcode); ++Opcode)
    if (!isInternal(Opcode))
      Counts.push_back(Opcodes[Opcode]);
  Counts.insert(Counts.end(), Pairs.begin(), Pairs.end() - 1);
}

} // namespace nestor
