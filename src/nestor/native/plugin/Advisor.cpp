//===- Advisor.cpp - The inline advisor that asks a policy ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llvm::MLInlineAdvisor does the work that LLVM's own ML advisors share: it
// computes the features, tracks the module's growth and keeps its caches right
// when a callee goes away. This advisor adds where the answer comes from (policy,
// default heuristic, override, sample) and writes down what became of it.
//
//===----------------------------------------------------------------------===//

#include "Advisor.h"
#include "Overrides.h"
#include "PolicyFile.h"
#include "SiteKeys.h"
#include "TrajectoryLog.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/InlineModelFeatureMaps.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"
#include <cmath>
#include <map>
#include <optional>

using namespace llvm;

namespace nestor {

namespace {

/// Holds the buffers that MLInlineAdvisor fills. The advisor evaluates the
/// policy itself, since an answer needs more than features (default, site key).
class FeatureBuffers final : public MLModelRunner {
public:
  FeatureBuffers(LLVMContext &C, const std::vector<TensorSpec> &Specs)
      : MLModelRunner(C, Kind::NoOp, Specs.size()), Storage(Specs.size()) {
    for (size_t I = 0; I < Specs.size(); ++I) {
      Storage[I].resize((Specs[I].getTotalTensorBufferSize() + 7) / 8);
      setUpBufferForTensor(I, Specs[I], Storage[I].data());
    }
  }

private:
  void *evaluateUntyped() override {
    llvm_unreachable("the advisor evaluates the policy");
  }
  std::vector<std::vector<uint64_t>> Storage;
};

class NestorAdvisor;

class NestorAdvice final : public MLInlineAdvice {
public:
  NestorAdvice(NestorAdvisor &Owner, CallBase &CB,
               OptimizationRemarkEmitter &ORE, Decision D);

private:
  void recordInliningImpl() override {
    MLInlineAdvice::recordInliningImpl();
    record(Effect::Inlined);
  }
  void recordInliningWithCalleeDeletedImpl() override {
    MLInlineAdvice::recordInliningWithCalleeDeletedImpl();
    record(Effect::CalleeDeleted);
  }
  void recordUnsuccessfulInliningImpl(const InlineResult &R) override {
    MLInlineAdvice::recordUnsuccessfulInliningImpl(R);
    record(Effect::Failed);
  }
  void recordUnattemptedInliningImpl() override {
    MLInlineAdvice::recordUnattemptedInliningImpl();
    record(Effect::NotTried);
  }
  void record(Effect E);

  Decision D;
};

class NestorAdvisor final : public MLInlineAdvisor {
public:
  /// What the settings name, loaded and checked.
  struct Parts {
    std::optional<LoadedPolicy> Policy; ///< None: the default decides.
    Overrides Fixed;
    std::unique_ptr<TrajectoryLog> Log;
  };

  NestorAdvisor(Module &M, ModuleAnalysisManager &MAM,
                FunctionAnalysisManager &FAM, InlineParams Params,
                InlineContext IC, const Settings &S, Parts P);
  ~NestorAdvisor() override;

  void onRecorded(Function &Caller, const Decision &D, Effect E);

private:
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &CB) override;
  std::unique_ptr<MLInlineAdvice>
  getAdviceFromModel(CallBase &CB, OptimizationRemarkEmitter &ORE) override;
  void answer(CallBase &CB, Decision &D);
  double readFeature(size_t Tensor) const;

  const Settings S;
  Parts P;
  DefaultInlineAdvisor StockAdvisor; ///< Asked for its answer, never followed.
  std::optional<SiteKeys> Keys;      ///< Only when something needs them.
  std::vector<int> Inputs; ///< Per policy feature: its tensor, -1 the default.
  std::vector<double> X;   ///< Scratch for the policy's input.
  bool NeedDefault;
  uint64_t Decisions = 0, AskedAfterCap = 0;
  std::map<uint64_t, std::string> Names;
};

} // namespace

NestorAdvice::NestorAdvice(NestorAdvisor &Owner, CallBase &CB,
                           OptimizationRemarkEmitter &ORE, Decision D)
    : MLInlineAdvice(&Owner, CB, ORE, D.Answer), D(std::move(D)) {}

void NestorAdvice::record(Effect E) {
  static_cast<NestorAdvisor *>(Advisor)->onRecorded(*Caller, D, E);
}

constexpr int DefaultAsFeature = -1;

/// Where each of the policy's features comes from, or which ones the compiler
/// does not have. Sources only grow: a policy may know fewer features.
static Expected<std::vector<int>>
bindFeatures(ArrayRef<std::string> Wanted, ArrayRef<TensorSpec> Offered) {
  std::vector<int> Inputs;
  std::string Missing;
  for (const std::string &Name : Wanted) {
    const auto *It = llvm::find_if(
        Offered, [&](const TensorSpec &T) { return T.name() == Name; });
    if (Name == "inlining_default")
      Inputs.push_back(DefaultAsFeature);
    else if (It != Offered.end() && It->getElementCount() == 1 &&
             (It->isElementType<int64_t>() || It->isElementType<float>()))
      Inputs.push_back(It - Offered.begin());
    else
      Missing += (Missing.empty() ? "" : ", ") + Name;
  }
  if (!Missing.empty())
    return createStringError("the policy needs features that this compiler does not offer: " +
            Missing);
  return Inputs;
}

NestorAdvisor::NestorAdvisor(Module &M, ModuleAnalysisManager &MAM,
                             FunctionAnalysisManager &FAM, InlineParams Params,
                             InlineContext IC, const Settings &S, Parts Loaded)
    : MLInlineAdvisor(
          M, MAM,
          [&M](const std::vector<TensorSpec> &Specs) {
            return std::make_unique<FeatureBuffers>(M.getContext(), Specs);
          },
          [this](CallBase &CB) {
            auto Advice = StockAdvisor.getAdvice(CB);
            bool Inline = Advice->isInliningRecommended();
            Advice->recordUnattemptedInlining();
            return Inline;
          }),
      S(S), P(std::move(Loaded)), StockAdvisor(M, FAM, Params, IC) {
  if (P.Policy) {
    // createAdvisor has checked that this succeeds.
    Inputs = cantFail(bindFeatures(P.Policy->Features, FeatureMap));
    X.resize(Inputs.size());
  }
  NeedDefault = !P.Policy || P.Log ||
                P.Policy->Meaning == Answers::Deviation ||
                llvm::is_contained(Inputs, DefaultAsFeature);
  if (P.Log || !P.Fixed.empty() || (S.Seed && P.Policy))
    Keys.emplace(M);
}

NestorAdvisor::~NestorAdvisor() {
  if (!P.Log)
    return;
  json::Object Summary{
      {"decisions", Decisions},
      {"growth_cap_reached", isForcedToStop()},
      {"asked_after_growth_cap", AskedAfterCap},
      {"overrides", P.Fixed.size()},
      {"stale_overrides", P.Fixed.countStale()},
  };
  if (S.LogNames) {
    json::Object NameOf;
    for (const auto &[ID, Name] : Names)
      NameOf[utohexstr(ID, /*LowerCase=*/true, /*Width=*/16)] = Name;
    Summary["names"] = std::move(NameOf);
  }
  if (Error E = P.Log->finish(std::move(Summary)))
    M.getContext().emitError("nestor: cannot write the log '" + S.Log +
                             "': " + toString(std::move(E)));
}

std::unique_ptr<InlineAdvice> NestorAdvisor::getAdviceImpl(CallBase &CB) {
  // Past the growth cap the base class answers "no" without asking anybody.
  AskedAfterCap += isForcedToStop();
  return MLInlineAdvisor::getAdviceImpl(CB);
}

double NestorAdvisor::readFeature(size_t Tensor) const {
  const TensorSpec &Spec = FeatureMap[Tensor];
  return Spec.isElementType<float>()
             ? double(*ModelRunner->getTensor<float>(Tensor))
             : double(*ModelRunner->getTensor<int64_t>(Tensor));
}

void NestorAdvisor::answer(CallBase &CB, Decision &D) {
  if (NeedDefault)
    D.Default = GetDefaultAdvice(CB);
  if (Keys)
    D.Site = Keys->keyOf(CB);
  D.Answer = D.Default;
  if (P.Policy) {
    for (size_t I = 0; I < X.size(); ++I)
      X[I] = Inputs[I] == DefaultAsFeature ? double(D.Default)
                                           : readFeature(Inputs[I]);
    D.Margin = P.Policy->Evaluator->margin(X);
    const double Positive =
        positiveProbability(D.Margin, S.Seed ? S.Temperature : 1);
    bool Act = S.Seed ? uniform(*S.Seed, D.Site) < Positive : D.Margin > 0;
    D.LogProbability = std::log(Act ? Positive : 1 - Positive);
    D.Answer = P.Policy->Meaning == Answers::Decision ? Act : Act != D.Default;
  }
  if (P.Fixed.empty())
    return;
  if (std::optional<bool> Fixed = P.Fixed.lookup(D.Site)) {
    D.Answer = *Fixed;
    D.Overridden = 1;
  }
}

std::unique_ptr<MLInlineAdvice>
NestorAdvisor::getAdviceFromModel(CallBase &CB,
                                  OptimizationRemarkEmitter &ORE) {
  Decision D;
  answer(CB, D);
  ++Decisions;
  if (P.Log) {
    for (size_t I = 0; I < FeatureMap.size(); ++I)
      D.Features.push_back(*ModelRunner->getTensor<int64_t>(I));
    Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
    D.Caller = functionID(Caller);
    D.Callee = functionID(Callee);
    if (S.LogNames) {
      Names[D.Caller] = Caller.getName().str();
      Names[D.Callee] = Callee.getName().str();
    }
  }
  return std::make_unique<NestorAdvice>(*this, CB, ORE, std::move(D));
}

void NestorAdvisor::onRecorded(Function &Caller, const Decision &D, Effect E) {
  if (Keys && (E == Effect::Inlined || E == Effect::CalleeDeleted))
    Keys->onInlined(Caller, D.Site);
  if (P.Log)
    P.Log->write(D, E);
}

/// Loads what \p S names, or says what is wrong with it.
static Expected<NestorAdvisor::Parts> load(const Module &M, const Settings &S) {
  const std::vector<TensorSpec> &Offered =
      MLInlineAdvisor::getInitialFeatureMap();
  auto Wrap = [](StringRef What, StringRef Path, Error E) {
    return createStringError(What + " '" + Path + "': " +
                                 toString(std::move(E)));
  };
  NestorAdvisor::Parts P;
  if (!(S.Temperature > 0) || !std::isfinite(S.Temperature))
    return createStringError("-nestor-temperature must be positive");
  if (!S.Policy.empty() && S.Policy != "default") {
    Expected<LoadedPolicy> Policy = loadPolicy(S.Policy);
    if (!Policy)
      return Wrap("cannot use the policy", S.Policy, Policy.takeError());
    if (Error E = bindFeatures(Policy->Features, Offered).takeError())
      return Wrap("cannot use the policy", S.Policy, std::move(E));
    P.Policy = std::move(*Policy);
  }
  if (!S.Overrides.empty()) {
    Expected<Overrides> Fixed = Overrides::load(S.Overrides);
    if (!Fixed)
      return Wrap("cannot use the overrides", S.Overrides, Fixed.takeError());
    P.Fixed = std::move(*Fixed);
  }
  if (!S.Log.empty()) {
    auto Log = TrajectoryLog::create(S.Log, Offered, M.getName());
    if (!Log)
      return Wrap("cannot write the log", S.Log, Log.takeError());
    P.Log = std::move(*Log);
  }
  return P;
}

std::unique_ptr<InlineAdvisor>
createAdvisor(Module &M, ModuleAnalysisManager &MAM,
              FunctionAnalysisManager &FAM, InlineParams Params,
              InlineContext IC, const Settings &S) {
  // A profile's or a sample's early inliner is another problem than this one.
  if (IC.Pass == InlinePass::CGSCCInliner) {
    Expected<NestorAdvisor::Parts> P = load(M, S);
    if (P)
      return std::make_unique<NestorAdvisor>(M, MAM, FAM, Params, IC, S,
                                             std::move(*P));
    M.getContext().emitError("nestor: " + toString(P.takeError()));
  }
  return std::make_unique<DefaultInlineAdvisor>(M, FAM, Params, IC);
}

} // namespace nestor
