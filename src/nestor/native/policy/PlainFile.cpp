//===- PlainFile.cpp - Reads files that may be hostile --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainFile.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace nestor {

Expected<std::unique_ptr<MemoryBuffer>> readPlainFile(StringRef Path,
                                                        size_t MaxBytes) {
  uint64_t Size = 0;
  if (std::error_code EC = sys::fs::file_size(Path, Size))
    return createStringError(EC, EC.message());
  if (!sys::fs::is_regular_file(Path))
    return createStringError("not a regular file");
  if (Size > MaxBytes)
    return createStringError("the file is larger than " + Twine(MaxBytes >> 20) +
                             " MiB");
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!Buffer)
    return createStringError(Buffer.getError(), Buffer.getError().message());
  return std::move(*Buffer);
}

} // namespace nestor
