//===- AllocationSearchTest.cpp - Search on costs that are made up --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The trials of a compiler are tested in tests/plugin; here the cost of a point is
// computed, so that what the search should find is not in doubt.
//
//===----------------------------------------------------------------------===//

#include "plugin/regalloc/trials/AllocationSearch.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <iterator>
#include <limits>

using namespace llvm;
using namespace nestor;

namespace {
/// A function with some questions: each has one candidate, modulo four, by which
/// its cost falls, and one priority helps.
struct Costs {
  unsigned Questions = 10, Priorities = 0;
  double StockCost = 1000, OtherAlternative = 1000;
  unsigned Asked = 0;
  std::vector<double> Seen;

  double at(const SearchPoint &P) const {
    double Cost = P.Alternative ? OtherAlternative : StockCost;
    for (const auto &[Question, Candidate] : P.Fixed.Evictions)
      Cost += Candidate % 4 == Question % 4 ? -10 : 3;
    for (const auto &[Number, Answer] : P.Fixed.Priorities)
      Cost -= Number == 1 ? Answer : -1;
    return Cost;
  }
  bool operator()(const SearchPoint &P, Allocation &Result) {
    ++Asked;
    Result = Allocation();
    Result.Cost.Instructions = at(P);
    Result.Questions = Questions;
    Result.Priorities = Priorities;
    Seen.push_back(Result.Cost.total());
    return false;
  }
};

SearchResult search(Costs &C, SearchSettings S) {
  SearchResult Result;
  CHECK_FALSE(searchAllocations(
      S, [&](const SearchPoint &P, Allocation &R) { return C(P, R); }, Result));
  CHECK(Result.Trials == C.Asked);
  return Result;
}

SearchSettings settings(unsigned Trials, uint64_t Seed = 1) {
  SearchSettings S;
  S.Trials = Trials;
  S.Seed = Seed;
  return S;
}
} // namespace

TEST_CASE("guessed frequencies need a gain under flatter ones too") {
  FunctionCost Stock, Other;
  Stock.Instructions = 60, Stock.Reads = 30, Stock.Writes = 10, Stock.Flattened = 50;
  Other.Instructions = 55, Other.Reads = 28, Other.Writes = 7, Other.Flattened = 51;
  CHECK(Other.ratioTo(Stock) == 0.9);
  CHECK(Stock.betterBelow() == 1);
  Stock.Guessed = Other.Guessed = true;
  CHECK(Other.ratioTo(Stock) == 51.0 / 50);
  Other.Flattened = 40;
  CHECK(Other.ratioTo(Stock) == 0.9);
  CHECK(Stock.ratioTo(Stock) == 1);
  CHECK(Stock.betterBelow() < 1);
}

TEST_CASE("a search finds most of what single answers give") {
  Costs C;
  const SearchResult R = search(C, settings(100000));
  CHECK(R.AtStock.Cost.total() == 1000);
  CHECK(R.AtBest.Cost.total() <= 1000 - 60); // 900 if all ten are right.
  CHECK(R.AtBest.Cost.total() == C.at(R.Best));
  CHECK(R.AtBest.Cost.total() == *std::min_element(C.Seen.begin(), C.Seen.end()));
}

TEST_CASE("no more is tried than asked for, and not more than is useful") {
  for (unsigned Trials : {1u, 2u, 17u}) {
    Costs C;
    CHECK(search(C, settings(Trials)).Trials == Trials);
  }
  Costs C;
  CHECK(search(C, settings(~0u)).Trials <= 20 + 8 * C.Questions);
}

TEST_CASE("where there is nothing to move, only the alternatives are tried") {
  Costs C;
  C.Questions = 0;
  SearchSettings S = settings(50);
  S.Alternatives = 3;
  CHECK(search(C, S).Trials == 3);
  Costs Ordered;
  Ordered.Questions = 0;
  Ordered.Priorities = 1; // The order of one live range.
  S.Priorities = true;
  CHECK(search(Ordered, S).Trials == 3);
}

TEST_CASE("the better alternative is where the search begins") {
  Costs C;
  C.OtherAlternative = 990;
  SearchSettings S = settings(2);
  S.Alternatives = 2;
  const SearchResult R = search(C, S);
  CHECK(R.Best.Alternative == 1);
  CHECK(R.Best.Fixed.empty());
  CHECK(R.AtStock.Cost.total() == 1000);
}

TEST_CASE("the last window that holds a question says who answers it") {
  SearchPoint P;
  P.Alternative = 3;
  CHECK(P.alternativeAt(0) == 3);
  P.Windows = {{2, 6, 1}, {4, 5, 2}};
  const size_t Expected[] = {3, 3, 1, 1, 2, 1, 3};
  for (unsigned Question = 0; Question < std::size(Expected); ++Question)
    CHECK(P.alternativeAt(Question) == Expected[Question]);
}

TEST_CASE("a search lets the better alternative answer where it is better") {
  constexpr unsigned Questions = 24, From = 8, To = 16;
  // Alternative 1 is better for the questions in the middle, and worse as a whole.
  auto Cost = [](const SearchPoint &P) {
    double Sum = 1000;
    for (unsigned Question = 0; Question < Questions; ++Question)
      if (P.alternativeAt(Question) == 1)
        Sum += From <= Question && Question < To ? -10 : 30;
    return Sum + double(P.Fixed.Evictions.size()); // Single answers do not help.
  };
  SearchSettings S = settings(1000);
  S.Alternatives = 2;
  SearchResult R;
  bool Valid = true;
  searchAllocations(
      S,
      [&](const SearchPoint &P, Allocation &Result) {
        for (const SearchWindow &W : P.Windows)
          Valid &= W.From < W.To && W.To <= Questions && W.Alternative < 2;
        Result = Allocation();
        Result.Cost.Instructions = Cost(P);
        Result.Questions = Questions;
        return false;
      },
      R);
  CHECK(Valid);
  CHECK(R.Best.Alternative == 0);
  CHECK(R.AtStock.Cost.total() == 1000);
  CHECK(R.AtBest.Cost.total() == Cost(R.Best));
  CHECK(R.AtBest.Cost.total() <= 1000 - 30); // 920 if the window is exact.
  CHECK(R.Best.alternativeAt(0) == 0);
  CHECK(R.Best.alternativeAt(Questions - 1) == 0);
}

TEST_CASE("with one alternative there are no windows") {
  Costs C;
  CHECK(search(C, settings(60)).Best.Windows.empty());
}

TEST_CASE("only what may be moved is moved") {
  Costs C;
  C.Priorities = 5;
  SearchSettings S = settings(60);
  SearchResult R = search(C, S);
  CHECK(R.Best.Fixed.Priorities.empty());
  CHECK(!R.Best.Fixed.Evictions.empty());
  Costs Ordered;
  Ordered.Priorities = 5;
  S.Evictions = false;
  S.Priorities = true;
  R = search(Ordered, S);
  CHECK(R.Best.Fixed.Evictions.empty());
  CHECK(R.Best.Fixed.Priorities == std::map<unsigned, double>{{1, 8}});
}

TEST_CASE("the same seed takes the same way, another seed another") {
  Costs A, B, C;
  search(A, settings(60, 1));
  search(B, settings(60, 1));
  search(C, settings(60, 2));
  CHECK(A.Seen == B.Seen);
  CHECK(A.Seen != C.Seen);
}

TEST_CASE("trials that fail are never chosen") {
  constexpr double Failed = std::numeric_limits<double>::infinity();
  Costs C;
  SearchResult R;
  searchAllocations(
      settings(60),
      [&](const SearchPoint &P, Allocation &Result) {
        C(P, Result);
        if (!P.Fixed.empty())
          Result.Cost.Instructions = Failed;
        return false;
      },
      R);
  CHECK(R.Best.Fixed.empty());
  CHECK(R.AtBest.Cost.total() == 1000);
  R = SearchResult();
  searchAllocations(
      settings(60),
      [&](const SearchPoint &, Allocation &Result) {
        Result = Allocation();
        Result.Cost.Instructions = Failed;
        return false;
      },
      R);
  CHECK(R.Best.Alternative == 0);
  CHECK(R.Best.Fixed.empty());
}

TEST_CASE("in the child of a trial the search ends at once") {
  for (unsigned Child : {1u, 2u, 30u}) {
    SearchSettings S = settings(50);
    S.Alternatives = 2;
    Costs C;
    SearchResult R;
    CHECK(searchAllocations(
        S,
        [&](const SearchPoint &P, Allocation &Result) {
          C(P, Result);
          return C.Asked == Child;
        },
        R));
    CHECK(C.Asked == Child);
  }
}
