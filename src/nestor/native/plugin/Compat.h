//===- Compat.h - What differs between the LLVM releases that are supported ===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plugin is written against LLVM 22; every difference of another release is
// here. 19 and 22 are built and tested. 20, 21 and 23 are expected to work: the
// identity gate decides when one is first used (docs/reference/versions.md).
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_COMPAT_H
#define NESTOR_COMPAT_H

#include "llvm/Analysis/InlineModelFeatureMaps.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/InstructionCost.h"

#if LLVM_VERSION_MAJOR < 19 || LLVM_VERSION_MAJOR > 23
#error "Nestor's plugin supports LLVM 19 to 23"
#endif

// Since 22 a plugin may look at a module before code generation
// (PassPluginLibraryInfo::PreCodeGenCallback), which is where the function log is
// written; its header has moved, and IR2Vec numbers its entities in public.
#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#define NESTOR_HAS_FUNCTION_LOG 1
#define NESTOR_HAS_IR2VEC 1
#else
#include "llvm/Passes/PassPlugin.h"
#define NESTOR_HAS_FUNCTION_LOG 0
#define NESTOR_HAS_IR2VEC 0
#endif

// Makes references to a variable or a virtual table weak. They are resolved when the
// plugin is loaded, and if they are strong, a compiler of another LLVM, which lacks it,
// ends with the symbol's name before the plugin can say which LLVM it is for.
#define NESTOR_WEAK(SYMBOL) __asm__(".weak " SYMBOL)

namespace nestor {

/// LLVM's own features of a call site. Before 22 the advisor did not name them, but
/// its list was made from these macros.
inline const std::vector<llvm::TensorSpec> &inTreeFeatures() {
#if LLVM_VERSION_MAJOR >= 22
  return llvm::MLInlineAdvisor::getInitialFeatureMap();
#else
#define NESTOR_SPEC(TYPE, SHAPE, NAME, DOC) llvm::TensorSpec::createSpec<TYPE>(#NAME, SHAPE),
  static const std::vector<llvm::TensorSpec> Features{
      INLINE_COST_FEATURE_ITERATOR(NESTOR_SPEC) INLINE_FEATURE_ITERATOR(NESTOR_SPEC)};
#undef NESTOR_SPEC
  return Features;
#endif
}

/// What MLInlineAdvisor's constructor takes for its model: since 22 a function that
/// is called with the features, before that what the function returns.
template <typename Factory> auto modelRunner(Factory Make) {
#if LLVM_VERSION_MAJOR >= 22
  return Make;
#else
  return Make(inTreeFeatures());
#endif
}

/// The value of a valid cost, which came as an optional before 21.
inline int64_t valueOf(const llvm::InstructionCost &Cost) {
#if LLVM_VERSION_MAJOR >= 21
  return Cost.getValue();
#else
  return *Cost.getValue();
#endif
}

// Since 23 there are two classes of branches with opcodes 2 and 3, so that all opcodes
// behind them are one higher.
#if LLVM_VERSION_MAJOR >= 23
inline bool isBranch(const llvm::Value &V) {
  return llvm::isa<llvm::UncondBrInst, llvm::CondBrInst>(V);
}
constexpr unsigned withOneBranch(unsigned Opcode) { return Opcode - (Opcode > 2); }
constexpr unsigned withTwoBranches(unsigned Opcode) { return Opcode + (Opcode > 2); }
#else
inline bool isBranch(const llvm::Value &V) { return llvm::isa<llvm::BranchInst>(V); }
constexpr unsigned withOneBranch(unsigned Opcode) { return Opcode; }
constexpr unsigned withTwoBranches(unsigned Opcode) { return Opcode; }
#endif

/// Whether \p V jumps to one of two blocks.
inline bool isConditionalBranch(const llvm::Value &V) {
  return isBranch(V) && llvm::cast<llvm::Instruction>(V).getNumSuccessors() == 2;
}

/// What an opcode of 2020 is today, branches counted as one: 22 has added PtrToAddr.
constexpr unsigned opcodeSince2020(unsigned Opcode) {
#if LLVM_VERSION_MAJOR >= 22
  return Opcode + (Opcode >= withOneBranch(llvm::Instruction::PtrToAddr));
#else
  return Opcode;
#endif
}

} // namespace nestor

#endif
