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

/// The values of the options that do not depend on what is decided.
struct Settings {
  std::string Log; ///< A file, or a folder that gets a log for each module.
  bool LogNames = false;
  std::string FunctionLog; ///< What each function is made of, before it is code.
  bool NoCode = false;     ///< With it: the object stays empty.
  std::optional<uint64_t> Seed; ///< Set: sample instead of being greedy.
  double Temperature = 1;
};

/// Makes the -nestor-… options known to LLVM's command line. To be called when
/// the plugin is loaded, which is before those options are parsed.
void registerOptions();

/// The options' values, after parsing.
Settings currentSettings();

} // namespace nestor

#endif
