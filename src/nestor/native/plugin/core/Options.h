//===- Options.h - What the user asks the plugin to do --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_OPTIONS_H
#define NESTOR_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>

namespace nestor {

/// The values of the plugin's command-line options.
struct Settings {
  std::string Policy; ///< A file, or "default" for the stock heuristic's answers.
  std::string Overrides;
  std::string Program; ///< The program's summary: changes no answer by itself.
  std::string Log; ///< A file, or a folder that gets a log for each module.
  bool LogNames = false;
  std::string Vocabulary; ///< For the embeddings of functions, if wanted.
  std::string FunctionLog; ///< What each function is made of, before it is code.
  bool NoCode = false;     ///< With it: the object stays empty.
  std::optional<uint64_t> Seed; ///< Set: sample instead of being greedy.
  bool SeedCallees = false; ///< Draw one number for all sites of a callee.
  double Temperature = 1;

  /// Whether the inliner's advisor is to be replaced at all.
  bool enabled() const {
    return !Policy.empty() || !Overrides.empty() || !Log.empty();
  }
};

/// Makes the -nestor-… options known to LLVM's command line. Called when the
/// plugin is loaded, which is before those options are parsed; this is the only
/// global constructor.
void registerOptions();

/// The options' values, after parsing.
Settings currentSettings();

} // namespace nestor

#endif
