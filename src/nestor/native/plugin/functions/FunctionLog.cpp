//===- FunctionLog.cpp - Writes what each function is made of -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionLog.h"
#include "FunctionCounts.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace nestor {

constexpr int FormatVersion = 1;

static void writeHeader(raw_ostream &OS, const Module &M) {
  json::OStream J(OS);
  J.object([&] {
    J.attribute("nestor_functions", FormatVersion);
    J.attribute("module", json::fixUTF8(M.getName()));
    J.attributeArray("counts", [&] {
      for (const std::string &Name : functionCountNames())
        J.value(Name);
    });
  });
  OS << '\n';
}

static void writeFunction(raw_ostream &OS, Function &F, TargetMachine &TM) {
  const TargetTransformInfo TTI = TM.getTargetTransformInfo(F);
  // What the symbol is called in the object: a first byte of 1 is not part of it.
  StringRef Name = GlobalValue::dropLLVMManglingEscape(F.getName());
  OS << '[' << json::Value(json::fixUTF8(Name));
  for (int64_t Count : countFunction(F, TTI))
    OS << ',' << Count;
  OS << "]\n";
}

Error writeFunctionLog(StringRef Path, Module &M, TargetMachine &TM) {
  std::error_code EC;
  raw_fd_ostream OS(Path, EC);
  if (EC)
    return createStringError(EC, EC.message());
  writeHeader(OS, M);
  int64_t Functions = 0;
  for (Function &F : M) {
    if (F.isDeclarationForLinker())
      continue;
    writeFunction(OS, F, TM);
    ++Functions;
  }
  OS << "{\"functions\":" << Functions << "}\n";
  OS.flush();
  if (!OS.has_error())
    return Error::success();
  EC = OS.error();
  OS.clear_error(); // Else its destructor would end the compiler.
  return createStringError(EC, EC.message());
}

} // namespace nestor
