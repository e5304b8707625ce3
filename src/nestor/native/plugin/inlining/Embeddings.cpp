//===- Embeddings.cpp - What the code of a function is like ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Embeddings.h"
#include "plugin/Compat.h"
#include "plugin/core/TextFile.h"
#include "policy/PlainFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Function.h"
#include <array>
#if NESTOR_HAS_IR2VEC
#include "llvm/Analysis/IR2Vec.h"
#endif

using namespace llvm;

namespace nestor {

#if NESTOR_HAS_IR2VEC

using ir2vec::Vocabulary;

/// As many as policies may have features.
constexpr unsigned MaxDimension = 512;
/// Sums stay exact as f64 for any function that LLVM could hold.
constexpr int64_t MaxNumber = int64_t(1) << 20;
constexpr size_t Entities = Vocabulary::getCanonicalSize();

static StringMap<unsigned> numberEntities() {
  StringMap<unsigned> Result;
  for (unsigned Entity = 0; Entity < Entities; ++Entity)
    Result.try_emplace(Vocabulary::getStringKey(Entity), Entity);
  return Result;
}

Expected<Embeddings> Embeddings::parse(StringRef Text) {
  Embeddings Result;
  const StringMap<unsigned> Numbers = numberEntities();
  std::vector<bool> Seen(Entities);
  auto SetDimension = [&](ArrayRef<StringRef> Words) -> std::string {
    unsigned N;
    if (Result.Dimension || Words.size() != 2 || Words[1].getAsInteger(10, N) ||
        !N || N > MaxDimension)
      return "expected one 'dimension <1 to " + std::to_string(MaxDimension) + ">'";
    Result.Dimension = N;
    Result.Vectors.resize(Entities * N);
    return "";
  };
  auto AddEntity = [&](ArrayRef<StringRef> Words) -> std::string {
    if (!Result.Dimension || Words.size() != 2 + Result.Dimension)
      return "expected 'entity <name>' and as many numbers as the dimension says";
    auto Entity = Numbers.find(Words[1]);
    if (Entity == Numbers.end())
      return ("LLVM has no entity '" + Words[1] + "'").str();
    if (Seen[Entity->second])
      return ("the entity " + Words[1] + " is given twice").str();
    Seen[Entity->second] = true;
    int64_t *Vector = &Result.Vectors[Entity->second * Result.Dimension];
    for (StringRef Word : Words.drop_front(2)) {
      if (Word.getAsInteger(10, *Vector) || *Vector > MaxNumber || *Vector < -MaxNumber)
        return "expected whole numbers of at most 2^20";
      ++Vector;
    }
    return "";
  };
  Error E = parseTextFile(
      Text, "nestor-vocabulary 1", [&](ArrayRef<StringRef> Words) -> std::string {
        if (Words[0] == "dimension")
          return SetDimension(Words);
        return Words[0] == "entity" ? AddEntity(Words)
                                    : "expected 'dimension' or 'entity'";
      });
  if (E)
    return E;
  if (!Result.Dimension)
    return createStringError("there is no line 'dimension <number>'");
  return Result;
}

std::vector<int64_t> Embeddings::of(const Function &F) const {
  std::array<int64_t, Entities> Counts{};
  for (const BasicBlock &BB : F)
    for (const Instruction &I : BB) {
      ++Counts[Vocabulary::getIndex(I.getOpcode())];
      ++Counts[Vocabulary::getIndex(I.getType()->getTypeID())];
      for (const Value *Operand : I.operands())
        ++Counts[Vocabulary::getIndex(*Operand)];
      if (const auto *Compare = dyn_cast<CmpInst>(&I))
        ++Counts[Vocabulary::getIndex(Compare->getPredicate())];
    }
  std::vector<int64_t> Result(Dimension);
  for (size_t Entity = 0; Entity < Entities; ++Entity)
    if (Counts[Entity])
      for (size_t K = 0; K < Dimension; ++K)
        Result[K] += Counts[Entity] * Vectors[Entity * Dimension + K];
  return Result;
}

#else

Expected<Embeddings> Embeddings::parse(StringRef) {
  return createStringError("vocabularies need LLVM 22, and this is LLVM " LLVM_VERSION_STRING);
}

std::vector<int64_t> Embeddings::of(const Function &) const { return {}; }

#endif

Expected<Embeddings> Embeddings::load(StringRef Path) {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return Buffer.takeError();
  return parse((*Buffer)->getBuffer());
}

} // namespace nestor
