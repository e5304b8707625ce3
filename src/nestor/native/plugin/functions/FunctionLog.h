//===- FunctionLog.h - Writes what each function is made of ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON lines: one that names the counts, one for each function that code will be
// generated for, and one that says how many these were; a log without it was cut
// short.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_FUNCTIONLOG_H
#define NESTOR_FUNCTIONLOG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace nestor {

llvm::Error writeFunctionLog(llvm::StringRef Path, llvm::Module &M,
                             llvm::TargetMachine &TM);

} // namespace nestor

#endif
