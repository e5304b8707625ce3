//===- TensorRunner.cpp - Takes the place of LLVM's model -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorRunner.h"
#include <malloc.h>

using namespace llvm;

namespace nestor {

void *TensorRunner::evaluateUntyped() {
  Index = Answer(*this);
  return &Index;
}

namespace {
/// ReleaseModeEvictionAdvisorProvider (llvm/lib/CodeGen/MLRegAllocEvictAdvisor.cpp).
struct ProviderLayout : RegAllocEvictionAdvisorProvider {
  std::vector<TensorSpec> InputFeatures;
  std::unique_ptr<MLModelRunner> Runner;
};
} // namespace

/// Whether \p Specs, which may be any bytes, is a vector of a few tensors.
static bool isPlausible(const std::vector<TensorSpec> &Specs) {
  struct Pointers {
    uintptr_t Begin, End, Capacity;
  };
  static_assert(sizeof(Specs) == sizeof(Pointers), "three pointers");
  Pointers P;
  memcpy(&P, &Specs, sizeof(P));
  constexpr size_t MostTensors = 64;
  return P.Begin && P.Begin % alignof(TensorSpec) == 0 && P.Begin < P.End &&
         P.End <= P.Capacity && (P.End - P.Begin) % sizeof(TensorSpec) == 0 &&
         (P.End - P.Begin) / sizeof(TensorSpec) <= MostTensors;
}

Expected<DescribingProvider> createDescribingProvider(LLVMContext &C) {
  DescribingProvider Result;
  Result.Provider.reset(createReleaseModeAdvisorProvider(C));
  const size_t Allocated = malloc_usable_size(Result.Provider.get());
  auto *Layout = static_cast<ProviderLayout *>(Result.Provider.get());
  // The allocator rounds up to its own unit, of 16 bytes.
  if (Allocated < sizeof(ProviderLayout) || Allocated > sizeof(ProviderLayout) + 16 ||
      Layout->getAdvisorMode() !=
          RegAllocEvictionAdvisorProvider::AdvisorMode::Release ||
      !isPlausible(Layout->InputFeatures) || Layout->Runner ||
      Layout->InputFeatures.front().name() != "mask")
    return createStringError("this LLVM keeps the model of its eviction advisor in "
                             "an unexpected place; policies about eviction need "
                             "LLVM 22");
  Result.Specs = Layout->InputFeatures;
  auto Runner = std::make_unique<TensorRunner>(C, Result.Specs);
  Result.Runner = Runner.get();
  Layout->Runner = std::move(Runner);
  return std::move(Result);
}

} // namespace nestor
