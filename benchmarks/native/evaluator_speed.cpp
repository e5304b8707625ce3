//===- evaluator_speed.cpp - Time per decision of a policy ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// evaluator-speed POLICY INPUTS ROUNDS: INPUTS holds f64 rows in the order of
// the policy's features. Prints the processor time per decision in nanoseconds,
// a line per round; a round asks for every row, in order, as a compile would.
//
//===----------------------------------------------------------------------===//

#include "policy/PolicyFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace llvm;

static double processorSeconds() {
  timespec T;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &T);
  return double(T.tv_sec) + double(T.tv_nsec) * 1e-9;
}

int main(int Count, char **Arguments) {
  if (Count != 4)
    return 2;
  auto Policy = nestor::loadPolicy(Arguments[1]);
  if (!Policy) {
    std::fprintf(stderr, "%s\n", toString(Policy.takeError()).c_str());
    return 1;
  }
  auto Buffer = MemoryBuffer::getFile(Arguments[2], false, false);
  if (!Buffer)
    return 1;
  const size_t Columns = Policy->Features.size();
  std::vector<double> X((*Buffer)->getBufferSize() / sizeof(double));
  std::memcpy(X.data(), (*Buffer)->getBufferStart(), X.size() * sizeof(double));
  const size_t Rows = X.size() / Columns;
  if (!Rows)
    return 1;
  double Sum = 0; // Printed, so that no evaluation can be left out.
  for (int Rounds = std::atoi(Arguments[3]); Rounds > 0; --Rounds) {
    const double Start = processorSeconds();
    for (size_t Row = 0; Row < Rows; ++Row)
      Sum += Policy->Evaluator->logit(
          ArrayRef<double>(X.data() + Row * Columns, Columns));
    std::printf("%.3f\n", (processorSeconds() - Start) / double(Rows) * 1e9);
  }
  std::fprintf(stderr, "%g\n", Sum);
  return 0;
}
