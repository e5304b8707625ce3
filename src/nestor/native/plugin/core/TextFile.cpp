//===- TextFile.cpp - Text files of one entry per line --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace llvm;

namespace nestor {

/// Takes the first line off \p Text and splits it. Made to be fast: every compile reads a
/// summary, which has a line for each function of the program.
static void takeWords(StringRef &Text, SmallVectorImpl<StringRef> &Words) {
  StringRef Line;
  std::tie(Line, Text) = Text.split('\n');
  Line = Line.take_front(Line.find('#'));
  while (!Line.empty() && isSpace(Line.back()))
    Line = Line.drop_back();
  while (!Line.empty() && isSpace(Line.front()))
    Line = Line.drop_front();
  Words.clear();
  while (!Line.empty()) {
    const StringRef Word = Line.take_front(Line.find(' '));
    Line = Line.drop_front(std::min(Word.size() + 1, Line.size()));
    if (!Word.empty())
      Words.push_back(Word);
  }
}

Error parseTextFile(StringRef Text, StringRef Header,
                    function_ref<std::string(ArrayRef<StringRef>)> Entry) {
  bool SeenHeader = false;
  SmallVector<StringRef, 8> Words;
  for (unsigned Number = 1; !Text.empty(); ++Number) {
    takeWords(Text, Words);
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
  ID = 0;
  for (char C : Word) {
    const unsigned Digit = hexDigitValue(C);
    if (Digit > 15)
      return false;
    ID = ID << 4 | Digit;
  }
  return Word.size() == 16;
}

} // namespace nestor
