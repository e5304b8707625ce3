//===- Prefetch.c - Instructions that fetch a line ahead ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 0F 18 and 0F 0D with an operand in memory ("Intel 64 and IA-32 Architectures
// Software Developer's Manual", volume 2, PREFETCHh, PREFETCHW, and chapter 2 on
// ModRM and SIB bytes).
//
//===----------------------------------------------------------------------===//

#include "Prefetch.h"

enum { OfSib = 4, OfNext = 5, NoIndex = 4, NoBase = 5, Bytes1 = 1, Bytes4 = 4 };

static Bool isPlain(const UChar *Bytes, UInt Skipped) {
  UInt I;
  for (I = 0; I < Skipped; I++)
    if (Bytes[I] == 0x64 || Bytes[I] == 0x65 || Bytes[I] == 0x67)
      return False;
  return True;
}

static Long signedNumber(const UChar *Bytes, UInt Size) {
  if (Size == Bytes1)
    return (Char)Bytes[0];
  return (Int)(Bytes[0] | (UInt)Bytes[1] << 8 | (UInt)Bytes[2] << 16 |
               (UInt)Bytes[3] << 24);
}

Bool decodePrefetch(const UChar *Bytes, UInt Skipped, UInt Length,
                    Prefetch *Found) {
  const UChar *At = Bytes + Skipped, *End = Bytes + Length;
  UChar Rex = Skipped && (At[-1] & 0xf0) == 0x40 ? At[-1] : 0;
  UInt Mode, Hint, Place, Size;
  if (End - At < 3 || At[0] != 0x0f || (At[1] != 0x18 && At[1] != 0x0d) ||
      !isPlain(Bytes, Skipped))
    return False;
  Mode = At[2] >> 6;
  Hint = At[2] >> 3 & 7;
  Place = At[2] & 7;
  if (Mode == 3 || Hint > (At[1] == 0x18 ? 3 : 2))
    return False;
  // Of 0F 18, t1 and t2 leave the first level as it is; of 0F 0D, wt1 does.
  Found->Nearest = Hint < 2;
  Found->FromNext = False;
  Found->Index = -1;
  Found->Shift = 0;
  Size = Mode == 1 ? Bytes1 : Mode == 2 ? Bytes4 : 0;
  At += 3;
  if (Place == OfSib) {
    if (At == End)
      return False;
    Found->Shift = At[0] >> 6;
    Found->Index = (At[0] >> 3 & 7) | (Rex & 2) << 2;
    if (Found->Index == NoIndex)
      Found->Index = -1;
    Place = At[0] & 7;
    At++;
    Found->Base = Place | (Rex & 1) << 3;
    if (Place == NoBase && Mode == 0) {
      Found->Base = -1;
      Size = Bytes4;
    }
  } else if (Place == OfNext && Mode == 0) {
    Found->Base = -1;
    Found->FromNext = True;
    Size = Bytes4;
  } else
    Found->Base = Place | (Rex & 1) << 3;
  if (End - At != (Long)Size)
    return False;
  Found->Displacement = Size ? signedNumber(At, Size) : 0;
  return True;
}
