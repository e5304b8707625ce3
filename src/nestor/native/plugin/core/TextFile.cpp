//===- TextFile.cpp - Text files of one entry per line --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace nestor {

Error parseTextFile(StringRef Text, StringRef Header,
                    function_ref<std::string(ArrayRef<StringRef>)> Entry) {
  bool SeenHeader = false;
  for (unsigned Number = 1; !Text.empty(); ++Number) {
    StringRef Line;
    std::tie(Line, Text) = Text.split('\n');
    SmallVector<StringRef, 8> Words;
    Line.split('#').first.trim().split(Words, ' ', -1, /*KeepEmpty=*/false);
    if (Words.empty())
      continue;
    std::string Wrong;
    if (SeenHeader)
      Wrong = Entry(Words);
    else if (llvm::join(Words, " ") != Header)
      Wrong = ("expected '" + Header + "'").str();
    SeenHeader = true;
    if (!Wrong.empty())
      return createStringError("line " + Twine(Number) + ": " + Wrong);
  }
  if (!SeenHeader)
    return createStringError("the first line is not '" + Header + "'");
  return Error::success();
}

bool parseID(StringRef Word, uint64_t &ID) {
  return Word.size() == 16 && !Word.getAsInteger(16, ID);
}

} // namespace nestor
