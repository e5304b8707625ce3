//===- Options.cpp - What the user asks the plugin to do ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace nestor {

namespace {
struct Options {
  cl::opt<std::string> Log{
      "nestor-log", cl::value_desc("file"),
      cl::desc("Nestor: write the trajectory as an LLVM training log; in a folder, "
               "one for each module")};
  cl::opt<bool> LogNames{
      "nestor-log-names",
      cl::desc("Nestor: add the functions' names to the log's summary")};
  cl::opt<std::string> FunctionLog{
      "nestor-function-log", cl::value_desc("file"),
      cl::desc("Nestor: write counts of each function's IR before code generation")};
  cl::opt<bool> NoCode{
      "nestor-no-code",
      cl::desc("Nestor: with a function log, generate no code and leave the object empty")};
  cl::opt<uint64_t> Seed{
      "nestor-seed", cl::value_desc("number"),
      cl::desc("Nestor: sample decisions with this seed instead of taking the "
               "more probable one")};
  cl::opt<double> Temperature{
      "nestor-temperature", cl::init(1.0), cl::value_desc("number"),
      cl::desc("Nestor: divides the logit before sampling (default 1)")};
};
} // namespace

// Made on first use, so that there is no global constructor, and kept until the
// process ends: the registry of options refers to it.
static Options &options() {
  static Options *const TheOptions = new Options;
  return *TheOptions;
}

void registerOptions() { options(); }

Settings currentSettings() {
  Options &O = options();
  Settings S;
  S.Log = O.Log;
  S.LogNames = O.LogNames;
  S.FunctionLog = O.FunctionLog;
  S.NoCode = O.NoCode;
  if (O.Seed.getNumOccurrences())
    S.Seed = O.Seed;
  S.Temperature = O.Temperature;
  return S;
}

} // namespace nestor
