//===- Extract.cpp - Functions in a module of their own -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extract.h"
#include "plugin/inlining/SiteKeys.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace nestor {

namespace {
/// Declares what copied functions refer to, when they refer to it: a module may hold
/// thousands of symbols, and a function a few of them.
class Declarations final : public ValueMaterializer {
public:
  explicit Declarations(Module &To) : To(To) {}

  Value *materialize(Value *V) override {
    auto *G = dyn_cast<GlobalValue>(V);
    if (!G || G->getParent() == &To)
      return nullptr;
    if (auto *Variable = dyn_cast<GlobalVariable>(G))
      return declare(*Variable);
    if (auto *Type = dyn_cast<FunctionType>(G->getValueType()))
      return declare(*G, *Type);
    auto *New = new GlobalVariable(To, G->getValueType(), /*isConstant=*/false,
                                   GlobalValue::ExternalLinkage, nullptr, G->getName());
    return asDeclaredBy(*G, *New);
  }

  /// \p G is a function, or an alias or resolver of one.
  Function *declare(const GlobalValue &G, FunctionType &Type) {
    auto *New = Function::Create(&Type, GlobalValue::ExternalLinkage,
                                 G.getAddressSpace(), nameOf(G), &To);
    if (const auto *F = dyn_cast<Function>(&G)) {
      New->setCallingConv(F->getCallingConv());
      New->setAttributes(F->getAttributes());
    }
    return asDeclaredBy(G, *New);
  }

  ValueToValueMapTy Map;

private:
  /// Local variables are numbered, and an edit elsewhere must not change what is compiled.
  static StringRef nameOf(const GlobalValue &G) {
    return G.hasLocalLinkage() && isa<GlobalVariable>(G) ? "" : G.getName();
  }

  GlobalVariable *declare(const GlobalVariable &V) {
    auto *New = new GlobalVariable(To, V.getValueType(), V.isConstant(),
                                   GlobalValue::ExternalLinkage, nullptr, nameOf(V),
                                   nullptr, V.getThreadLocalMode(), V.getAddressSpace());
    New->setAlignment(V.getAlign());
    New->setUnnamedAddr(V.getUnnamedAddr());
    asDeclaredBy(V, *New);
    // Code depends on a constant's value; its bytes are the same wherever the code is.
    if (V.isConstant() && V.hasDefinitiveInitializer()) {
      New->setLinkage(GlobalValue::AvailableExternallyLinkage);
      New->setInitializer(MapValue(V.getInitializer(), Map, RF_None, nullptr, this));
    }
    return New;
  }

  /// How \p New is addressed is what \p G says. Its initializer may refer to itself.
  template <typename Symbol> Symbol *asDeclaredBy(const GlobalValue &G, Symbol &New) {
    const bool Local = G.hasLocalLinkage();
    New.setVisibility(Local ? GlobalValue::HiddenVisibility : G.getVisibility());
    New.setDSOLocal(Local || G.isDSOLocal());
    Map[&G] = &New;
    return &New;
  }

  Module &To;
};
} // namespace

/// What the code of a function depends on besides the function, such as whether it has to be
/// independent of its position.
static void copyFlags(const Module &From, Module &To, Declarations &Names) {
  const NamedMDNode *Flags = From.getModuleFlagsMetadata();
  if (!Flags)
    return;
  NamedMDNode *Copy = To.getOrInsertNamedMetadata("llvm.module.flags");
  for (const MDNode *Flag : Flags->operands())
    Copy->addOperand(MapMetadata(Flag, Names.Map, RF_None, nullptr, &Names));
}

static void copyBody(const Function &From, Function &To, Declarations &Names) {
  Function::arg_iterator Argument = To.arg_begin();
  for (const llvm::Argument &A : From.args())
    Names.Map[&A] = &*Argument++;
  SmallVector<ReturnInst *, 4> Returns;
  CloneFunctionInto(&To, &From, Names.Map, CloneFunctionChangeType::DifferentModule,
                    Returns, "", nullptr, nullptr, &Names);
}

/// A log must not change what is compiled, not even its name.
static void dropSiteKeys(Module &M) {
  const unsigned Kind = M.getMDKindID(SiteKeyMetadata);
  for (Function &F : M)
    for (Instruction &I : instructions(F))
      I.setMetadata(Kind, nullptr);
}

/// Without the table of symbols that linkers read.
static SmallVector<char, 0> toBitcode(const Module &M) {
  SmallVector<char, 0> Bytes;
  BitcodeWriter Writer(Bytes);
  Writer.writeModule(M);
  Writer.writeStrtab();
  return Bytes;
}

SmallVector<char, 0> extract(ArrayRef<const Function *> Functions) {
  const Module &M = *Functions.front()->getParent();
  Module New("trial", M.getContext());
  New.setDataLayout(M.getDataLayout());
  New.setTargetTriple(M.getTargetTriple());
  Declarations Names(New);
  copyFlags(M, New, Names);
  SmallVector<Function *, 2> Copies;
  for (const Function *F : Functions)
    Copies.push_back(Names.declare(*F, *F->getFunctionType()));
  for (auto [From, To] : llvm::zip(Functions, Copies))
    copyBody(*From, *To, Names);
  StripDebugInfo(New);
  dropSiteKeys(New);
  return toBitcode(New);
}

} // namespace nestor
