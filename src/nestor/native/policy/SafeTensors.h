//===- SafeTensors.h - Reads safetensors files without trusting them ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format: 8 bytes of header length (little endian), a JSON header that maps
// tensor names to {dtype, shape, data_offsets} and "__metadata__" to strings,
// then the tensors' bytes (https://github.com/huggingface/safetensors). The file
// may come from anywhere: every length, offset and nesting depth is checked
// before it is used.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_SAFETENSORS_H
#define NESTOR_SAFETENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <vector>

namespace nestor {

constexpr size_t MaxHeaderBytes = size_t(1) << 20;
constexpr unsigned MaxJSONDepth = 16;

enum class DType { F32, F64, I32 };

struct Tensor {
  DType Type;
  std::vector<uint64_t> Shape;
  llvm::ArrayRef<char> Bytes; ///< Points into the file's buffer.
};

struct SafeTensors {
  llvm::StringMap<Tensor> Tensors;
  llvm::StringMap<std::string> Metadata;
};

/// Reads \p File, which must outlive the result. Fails with one sentence on
/// anything that is malformed, truncated, overlapping or over the limits.
llvm::Expected<SafeTensors> readSafeTensors(llvm::StringRef File);

/// llvm::json::parse for text that may be hostile: refuses nesting deeper than
/// MaxJSONDepth before the (recursive) parser sees it.
llvm::Expected<llvm::json::Value> parseUntrustedJSON(llvm::StringRef Text);

} // namespace nestor

#endif
