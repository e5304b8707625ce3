//===- AllocationSearch.cpp - Better decisions by trials ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationSearch.h"
#include "plugin/regalloc/EvictionQuestion.h"
#include "policy/Draws.h"
#include <algorithm>
#include <iterator>

using namespace llvm;

namespace nestor {

namespace {
/// SplitMix64 (Steele et al. 2014): the same numbers with every C++ library.
class Random {
public:
  explicit Random(uint64_t Seed) : State(Seed) {}
  /// A whole number below \p N > 0.
  uint64_t below(uint64_t N) {
    const uint64_t Drawn = mix(State);
    State += 0x9e3779b97f4a7c15;
    return Drawn % N;
  }

private:
  uint64_t State;
};
} // namespace

template <typename Map> static void dropOne(Map &Choices, Random &R) {
  auto It = Choices.begin();
  std::advance(It, R.below(Choices.size()));
  Choices.erase(It);
}

/// Changes one answer. Questions are those of the incumbent's allocation; past the
/// first change there may be others.
static void moveOne(AllocationChoices &Fixed, const Allocation &At,
                    const SearchSettings &S, Random &R) {
  const bool MayEvict = S.Evictions && At.Questions;
  const bool MayOrder = S.Priorities && At.Priorities;
  if (MayEvict && (!MayOrder || R.below(2))) {
    if (!Fixed.Evictions.empty() && R.below(5) == 0)
      dropOne(Fixed.Evictions, R);
    else
      Fixed.Evictions[R.below(At.Questions)] = R.below(MaxCandidates);
  } else if (MayOrder) {
    static constexpr double Scales[] = {-8, -4, -2, -1, 1, 2, 4, 8};
    if (!Fixed.Priorities.empty() && R.below(5) == 0)
      dropOne(Fixed.Priorities, R);
    else
      Fixed.Priorities[R.below(At.Priorities)] = Scales[R.below(std::size(Scales))];
  }
}

/// Lets another alternative answer some questions in a row, mostly few.
static void moveWindow(SearchPoint &Point, const Allocation &At,
                       const SearchSettings &S, Random &R) {
  if (!Point.Windows.empty() && R.below(4) == 0) {
    Point.Windows.erase(Point.Windows.begin() + R.below(Point.Windows.size()));
    return;
  }
  const unsigned From = R.below(At.Questions);
  const unsigned Longest = At.Questions - From;
  const unsigned Length = 1 + R.below(1 + R.below(Longest));
  Point.Windows.push_back({From, From + Length, size_t(R.below(S.Alternatives))});
}

bool searchAllocations(const SearchSettings &S,
                       function_ref<bool(const SearchPoint &, Allocation &)> Try,
                       SearchResult &Result) {
  Random R(S.Seed);
  const FunctionCost &Stock = Result.AtStock.Cost;
  for (size_t I = 0; I < S.Alternatives; ++I) {
    SearchPoint Point;
    Point.Alternative = I;
    Allocation At;
    if (Try(Point, At))
      return true;
    ++Result.Trials;
    if (I == 0)
      Result.AtStock = At;
    if (I == 0 || At.Cost.ratioTo(Stock) < Result.AtBest.Cost.ratioTo(Stock)) {
      Result.Best = Point;
      Result.AtBest = At;
    }
  }
  const bool Movable = (S.Evictions && Result.AtStock.Questions) ||
                       (S.Priorities && Result.AtStock.Priorities > 1);
  // Few questions have few answers: more trials than this repeat themselves.
  const unsigned Useful =
      20 + 8 * ((S.Evictions ? Result.AtStock.Questions : 0) +
                (S.Priorities ? Result.AtStock.Priorities : 0));
  const unsigned Trials = Movable ? std::min(S.Trials, Useful) : 0;
  while (Result.Trials < Trials) {
    SearchPoint Point = Result.Best;
    if (S.Alternatives > 1 && Result.AtBest.Questions && R.below(2)) {
      moveWindow(Point, Result.AtBest, S, R);
    } else {
      const uint64_t Moves = R.below(3) ? 1 : 1 + R.below(4);
      for (uint64_t I = 0; I < Moves; ++I)
        moveOne(Point.Fixed, Result.AtBest, S, R);
    }
    Allocation At;
    if (Try(Point, At))
      return true;
    ++Result.Trials;
    if (At.Cost.ratioTo(Stock) <= Result.AtBest.Cost.ratioTo(Stock)) {
      Result.Best = std::move(Point);
      Result.AtBest = At;
    }
  }
  return false;
}

} // namespace nestor
