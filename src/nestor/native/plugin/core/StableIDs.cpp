//===- StableIDs.cpp - Names of functions and modules as 64 bits ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StableIDs.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace nestor {

uint64_t combineIDs(uint64_t A, uint64_t B) {
  uint8_t Bytes[16];
  support::endian::write64le(Bytes, A);
  support::endian::write64le(Bytes + 8, B);
  return xxh3_64bits(ArrayRef<uint8_t>(Bytes));
}

uint64_t functionID(const Function &F) {
  uint64_t Name = xxh3_64bits(F.getName());
  if (!F.hasLocalLinkage())
    return Name;
  return combineIDs(Name, moduleID(*F.getParent()));
}

uint64_t moduleID(const Module &M) {
  return xxh3_64bits(sys::path::filename(M.getSourceFileName()));
}

} // namespace nestor
