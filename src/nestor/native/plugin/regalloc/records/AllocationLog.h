//===- AllocationLog.h - What each function of a module will execute ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON lines: one that names the module, one for each function that was allocated,
// and one that says how many these were; a log without it was cut short.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONLOG_H
#define NESTOR_ALLOCATIONLOG_H

#include "AllocationOverrides.h"
#include "plugin/regalloc/trials/Trial.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace nestor {

/// What is written of one function.
struct AllocationRecord {
  uint64_t ID;
  const Allocation &Done;
  size_t Alternative; ///< 0 is the stock compiler.
  unsigned Trials;
  const std::optional<FunctionCost> &StockCost; ///< If it was tried.
  llvm::ArrayRef<double> Tried; ///< Costs of the alternatives over stock's.
  const AllocationChoices &Taken;
};

class AllocationLog {
public:
  /// Opens the file \p Path, or one in the folder \p Path, for \p M.
  static llvm::Expected<std::unique_ptr<AllocationLog>> create(llvm::StringRef Path,
                                                               const llvm::Module &M);
  void write(const llvm::Function &F, const AllocationRecord &Record);
  /// Ends the log; fails if any byte of it could not be written.
  llvm::Error finish();

private:
  explicit AllocationLog(std::unique_ptr<llvm::raw_fd_ostream> OS)
      : OS(std::move(OS)) {}
  std::unique_ptr<llvm::raw_fd_ostream> OS;
  uint64_t Functions = 0;
};

} // namespace nestor

#endif
