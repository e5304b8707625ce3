//===- SiteKeys.cpp - Names for call sites that survive other decisions ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SiteKeys.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

SiteKeys::SiteKeys(Module &M) : Kind(M.getMDKindID(SiteKeyMetadata)) {
  for (Function &F : M) {
    if (F.isDeclaration())
      continue;
    const uint64_t Owner = functionID(F);
    DenseMap<uint64_t, uint64_t> Ordinals; // By callee.
    for (Instruction &I : instructions(F)) {
      auto *CB = dyn_cast<CallBase>(&I);
      if (!CB || isa<IntrinsicInst>(CB))
        continue;
      const Function *Callee = CB->getCalledFunction();
      uint64_t CalleeID = Callee ? functionID(*Callee) : 0;
      uint64_t Ordinal = Ordinals[CalleeID]++;
      tag(*CB, combineIDs(combineIDs(Owner, CalleeID), Ordinal), Owner);
    }
  }
}

void SiteKeys::strip(Module &M) const {
  for (Function &F : M)
    for (Instruction &I : instructions(F))
      if (isa<CallBase>(I))
        I.setMetadata(Kind, nullptr);
}

/// \p CopyOf is what tag() gave the call that \p CB is a copy of.
void SiteKeys::tag(CallBase &CB, uint64_t Key, uint64_t Owner, MDNode *CopyOf) {
  LLVMContext &C = CB.getContext();
  Type *Int64 = Type::getInt64Ty(C);
  auto Number = [&](uint64_t N) {
    return ConstantAsMetadata::get(ConstantInt::get(Int64, N));
  };
  CB.setMetadata(Kind, MDNode::get(C, {Number(Key), Number(Owner), CopyOf}));
}

static uint64_t operand(const MDNode &Node, unsigned I) {
  return mdconst::extract<ConstantInt>(Node.getOperand(I))->getZExtValue();
}

uint64_t SiteKeys::keyOf(CallBase &CB) {
  uint64_t Origin;
  if (const MDNode *Node = CB.getMetadata(Kind)) {
    Origin = operand(*Node, 0);
  } else {
    // Made by a pass after the keys were given, out of nothing that had one.
    uint64_t Owner = functionID(*CB.getCaller());
    const Function *Callee = CB.getCalledFunction();
    Origin = combineIDs(combineIDs(Owner, Callee ? functionID(*Callee) : 0), ~0ULL);
    tag(CB, Origin, Owner);
  }
  for (uint64_t Copy = 0;; ++Copy) {
    uint64_t Key = Copy ? combineIDs(Origin, Copy) : Origin;
    Claim &C = Claims[Key];
    if (C.Gone || (C.Site && C.Site != &CB))
      continue;
    C.Site = &CB;
    return Key;
  }
}

SmallVector<uint64_t, 2> SiteKeys::copiedFrom(const CallBase &CB,
                                              uint64_t Key) const {
  SmallVector<uint64_t, 2> Keys;
  for (const MDNode *Node = CB.getMetadata(Kind); Node;
       Node = cast_or_null<MDNode>(Node->getOperand(2))) {
    // The first differs from Key if a pass has duplicated the call.
    const uint64_t Origin = operand(*Node, 0);
    if (Origin != Key && Claims.contains(Origin))
      Keys.push_back(Origin);
  }
  return Keys;
}

void SiteKeys::onInlined(Function &Caller, uint64_t Inlined) {
  Claims[Inlined].Gone = true;
  const uint64_t Owner = functionID(Caller);
  for (Instruction &I : instructions(Caller)) {
    auto *CB = dyn_cast<CallBase>(&I);
    if (!CB)
      continue;
    MDNode *Node = CB->getMetadata(Kind);
    if (Node && operand(*Node, 1) != Owner)
      tag(*CB, combineIDs(Inlined, operand(*Node, 0)), Owner, Node);
  }
}

} // namespace nestor
