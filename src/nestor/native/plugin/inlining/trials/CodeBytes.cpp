//===- CodeBytes.cpp - What functions take in an object -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeBytes.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace nestor {

namespace {
/// Keeps diagnostics to itself.
class Silence final : public DiagnosticHandler {
public:
  explicit Silence(bool &Failed) : Failed(Failed) {}
  bool handleDiagnostics(const DiagnosticInfo &Info) override {
    Failed |= Info.getSeverity() == DS_Error;
    return true;
  }

private:
  bool &Failed;
};

/// A code generator that writes objects to memory. It takes one module after another.
class ObjectCode {
public:
  /// Null if \p Target does not write objects.
  static std::unique_ptr<ObjectCode> create(TargetMachine &Target) {
    std::unique_ptr<ObjectCode> New(new ObjectCode);
    New->Passes.add(new TargetLibraryInfoWrapperPass(Target.getTargetTriple()));
    if (Target.addPassesToEmitFile(New->Passes, New->Out, nullptr,
                                   CodeGenFileType::ObjectFile, /*DisableVerify=*/true))
      return nullptr;
    return New;
  }

  /// The object of \p M, until the next call.
  MemoryBufferRef compile(Module &M) {
    Bytes.clear();
    Passes.run(M);
    return MemoryBufferRef(StringRef(Bytes.data(), Bytes.size()), "trial");
  }

private:
  ObjectCode() : Out(Bytes) {}

  SmallVector<char, 0> Bytes;
  raw_svector_ostream Out;
  legacy::PassManager Passes;
};

/// The managers of analyses, which know each other.
struct Analyses {
  explicit Analyses(PassBuilder &Builder) {
    Builder.registerModuleAnalyses(Modules);
    Builder.registerCGSCCAnalyses(Components);
    Builder.registerFunctionAnalyses(Functions);
    Builder.registerLoopAnalyses(Loops);
    Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
  }
  LoopAnalysisManager Loops;
  FunctionAnalysisManager Functions;
  CGSCCAnalysisManager Components;
  ModuleAnalysisManager Modules;
};
} // namespace

/// What compiles one module after another.
struct CodeBytes::Session {
  explicit Session(TargetMachine &Target) {
    Context.setDiagnosticHandler(std::make_unique<Silence>(Failed));
    Generator = ObjectCode::create(Target);
  }

  bool Failed = false;
  LLVMContext Context;
  std::unique_ptr<ObjectCode> Generator; ///< May be null. It goes before the context.
};

CodeBytes::CodeBytes(const Module &M) {
  std::string Why;
  const llvm::Target *Found = TargetRegistry::lookupTarget(M.getTargetTriple(), Why);
  if (!Found)
    return;
  const auto Relocation =
      M.getPICLevel() == PICLevel::NotPIC ? Reloc::Static : Reloc::PIC_;
  // The processor and its features are attributes of functions.
  Target.reset(Found->createTargetMachine(M.getTargetTriple(), "", "", TargetOptions(),
                                          Relocation, M.getCodeModel()));
}

CodeBytes::CodeBytes(CodeBytes &&) = default;
CodeBytes::~CodeBytes() = default;

/// As the inliner does it; then the body of \p Callee goes.
static bool inlineAllCalls(Function &Callee, FunctionAnalysisManager &FAM) {
  SmallVector<CallBase *, 8> Calls;
  for (Use &U : Callee.uses()) // Others are its address, in a table say.
    if (auto *CB = dyn_cast<CallBase>(U.getUser()); CB && CB->isCallee(&U))
      Calls.push_back(CB);
  auto Assumptions = [&](Function &F) -> AssumptionCache & {
    return FAM.getResult<AssumptionAnalysis>(F);
  };
  for (CallBase *CB : Calls) {
    Function &Caller = *CB->getCaller();
    InlineFunctionInfo Info(Assumptions);
    if (!InlineFunction(*CB, Info, /*MergeAttributes=*/true,
                        &FAM.getResult<AAManager>(Caller))
             .isSuccess())
      return false;
    FAM.invalidate(Caller, PreservedAnalyses::none());
  }
  FAM.clear(Callee, Callee.getName());
  Callee.deleteBody();
  return true;
}

/// The unwind entries of the section .eh_frame in \p Contents. What several functions share,
/// the common entries, is in an object anyway.
static int64_t unwindEntries(StringRef Contents, bool IsLittle) {
  const endianness Order = IsLittle ? endianness::little : endianness::big;
  int64_t Bytes = 0;
  for (size_t At = 0; At + 8 <= Contents.size();) {
    const uint64_t Length = 4 + uint64_t(support::endian::read32(Contents.data() + At, Order));
    const bool IsCommon = support::endian::read32(Contents.data() + At + 4, Order) == 0;
    Bytes += IsCommon ? 0 : Length;
    At += Length;
  }
  return Bytes;
}

/// Of the object \p Buffer; see of().
static std::optional<int64_t> measure(MemoryBufferRef Buffer) {
  auto Object = object::ObjectFile::createObjectFile(Buffer);
  if (!Object || !isa<object::ELFObjectFileBase>(**Object)) {
    consumeError(Object.takeError());
    return std::nullopt;
  }
  int64_t Sum = 0;
  for (const object::SectionRef &S : (*Object)->sections()) {
    constexpr uint64_t Kind = ELF::SHF_ALLOC | ELF::SHF_WRITE | ELF::SHF_MERGE;
    // The linker keeps one of equal strings and numbers (SHF_MERGE).
    if ((object::ELFSectionRef(S).getFlags() & Kind) != ELF::SHF_ALLOC)
      continue;
    Expected<StringRef> Name = S.getName(), Contents = S.getContents();
    const bool IsUnwind = Name && Contents && *Name == ".eh_frame";
    Sum += IsUnwind ? unwindEntries(*Contents, (*Object)->isLittleEndian())
                    : int64_t(S.getSize());
    consumeError(Name.takeError());
    consumeError(Contents.takeError());
  }
  return Sum;
}

std::optional<int64_t> CodeBytes::of(MemoryBufferRef Bitcode, StringRef Inlined, bool MinSize) {
  if (!Target)
    return std::nullopt;
  if (!Current)
    Current = std::make_unique<Session>(*Target);
  const std::optional<int64_t> Bytes = of(*Current, Bitcode, Inlined, MinSize);
  if (!Bytes)
    Current = nullptr; // Whatever an error has left there.
  return Bytes;
}

std::optional<int64_t> CodeBytes::of(Session &S, MemoryBufferRef Bitcode, StringRef Inlined,
                                     bool MinSize) {
  auto M = parseBitcodeFile(Bitcode, S.Context);
  if (!M) {
    consumeError(M.takeError());
    return std::nullopt;
  }
  PassBuilder Builder(Target.get());
  Analyses Managers(Builder);
  Function *Callee = Inlined.empty() ? nullptr : (*M)->getFunction(Inlined);
  if (!S.Generator || (Callee && !inlineAllCalls(*Callee, Managers.Functions)))
    return std::nullopt;
  const OptimizationLevel &Level =
      MinSize ? OptimizationLevel::Oz : OptimizationLevel::Os;
  ModulePassManager Passes;
  Passes.addPass(createModuleToFunctionPassAdaptor(
      Builder.buildFunctionSimplificationPipeline(Level, ThinOrFullLTOPhase::None)));
  Passes.addPass(
      Builder.buildModuleOptimizationPipeline(Level, ThinOrFullLTOPhase::None));
  Passes.run(**M, Managers.Modules);
  const std::optional<int64_t> Bytes = measure(S.Generator->compile(**M));
  return S.Failed ? std::nullopt : Bytes;
}

} // namespace nestor
