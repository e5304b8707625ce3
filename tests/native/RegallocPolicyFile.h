//===- RegallocPolicyFile.h - Policies of the register allocator's tests --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TESTS_REGALLOCPOLICYFILE_H
#define NESTOR_TESTS_REGALLOCPOLICYFILE_H

#include "FileBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

namespace nestor {

/// One layer: a weight for each feature.
inline FileBuilder linearPolicy(llvm::StringRef Problem, llvm::StringRef Rule,
                                std::vector<std::string> Features,
                                const std::vector<float> &Weights) {
  const int64_t N = int64_t(Features.size());
  FileBuilder B;
  B.Meta = metadata("mlp", "log", std::move(Features));
  B.Meta["problem"] = Problem;
  B.Meta["rule"] = Rule;
  B.f64("normalise.shift", std::vector<double>(N, 0));
  B.f64("normalise.scale", std::vector<double>(N, 1));
  B.f32("layer.0.weight", {1, N}, Weights).f32("layer.0.bias", {1}, {0});
  return B;
}

/// A portfolio of linear policies: a row of weights for each member.
inline FileBuilder linearPortfolio(llvm::StringRef Problem, llvm::StringRef Rule,
                                   std::vector<std::string> Features,
                                   const std::vector<std::vector<float>> &Rows) {
  const int64_t N = int64_t(Features.size()), Members = int64_t(Rows.size());
  std::vector<float> Weights;
  for (const std::vector<float> &Row : Rows)
    Weights.insert(Weights.end(), Row.begin(), Row.end());
  FileBuilder B = linearPolicy(Problem, Rule, std::move(Features), {});
  B.Meta["kind"] = "portfolio";
  B.f32("layer.0.weight", {Members, N}, Weights);
  return B.f32("layer.0.bias", {Members}, std::vector<float>(Members, 0));
}

/// A file that lives as long as this.
class PolicyOnDisk {
public:
  explicit PolicyOnDisk(const FileBuilder &B) {
    int FD;
    if (llvm::sys::fs::createTemporaryFile("nestor", "policy", FD, Path))
      llvm::report_fatal_error("no temporary file");
    llvm::raw_fd_ostream(FD, /*shouldClose=*/true) << B.build();
    Remover.setFile(Path);
  }
  PolicyOnDisk(const PolicyOnDisk &) = delete;
  llvm::StringRef path() const { return Path; }

private:
  llvm::SmallString<128> Path;
  llvm::FileRemover Remover;
};

} // namespace nestor

#endif
