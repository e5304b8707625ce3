//===- RegallocOptions.h - What the user asks of the register allocator ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_REGALLOCOPTIONS_H
#define NESTOR_REGALLOCOPTIONS_H

#include "plugin/core/Options.h"
#include <string>
#include <vector>

namespace nestor {

/// The values of all options that the allocator's advisors read.
struct RegallocSettings : Settings {
  /// Policy files, or "default". Several are alternatives, of which Best keeps
  /// the cheapest for each function.
  std::vector<std::string> Eviction, Priority;
  bool Best = false;
  unsigned Search = 0; ///< Trials of other decisions per function.
  unsigned Labels = 0; ///< Trials per function whose results the log gets.
  bool SearchEviction = true, SearchPriority = false; ///< What a search moves.
  std::string Overrides;
  std::string EvictionLog, PriorityLog; ///< Trajectories.
  std::string AllocationLog;            ///< Functions with their costs.
  bool SeedFunctions = false; ///< With a seed, draw one number for all of a function.

  bool asksEviction() const { return !Eviction.empty() || !EvictionLog.empty(); }
  bool asksPriority() const { return !Priority.empty() || !PriorityLog.empty(); }
  /// Whether functions are allocated on trial, so that their costs are compared.
  bool tries() const { return Best || Search || Labels; }
  /// Whether the allocator is to be touched at all.
  bool enabled() const {
    return asksEviction() || asksPriority() || tries() || !Overrides.empty() ||
           !AllocationLog.empty();
  }
};

/// See registerOptions().
void registerRegallocOptions();
RegallocSettings currentRegallocSettings();

} // namespace nestor

#endif
