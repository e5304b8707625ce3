//===- SiteKeys.h - Names for call sites that survive other decisions -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call site's key is a hash of where the call was written and of the inlined
// calls through which it got where it is:
//
//   written in F, the Nth call to G there      key = H(F, G, N)
//   copied into F by inlining a site with      key = H(P, K)
//   key P whose callee held a site of key K
//
// So the key of a site does not depend on decisions elsewhere, on the order in
// which the compiler asks, or on unrelated edits of the source. The key travels
// as metadata on the call, since that is what cloning preserves, and with it the
// keys that the call had before it was copied.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_SITEKEYS_H
#define NESTOR_SITEKEYS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/ValueHandle.h"
#include <cstdint>

namespace llvm {
class MDNode;
class Module;
} // namespace llvm

namespace nestor {

/// The kind of metadata that holds the key of a call.
constexpr llvm::StringLiteral SiteKeyMetadata = "nestor.site";

class SiteKeys {
public:
  /// Gives every call in \p M its key. To be made before the first decision.
  explicit SiteKeys(llvm::Module &M);

  /// The key of \p CB, unique within its caller among the calls that live now.
  uint64_t keyOf(llvm::CallBase &CB);

  /// The sites that \p CB, whose key is \p Key, is a copy of, nearest first:
  /// those that were asked about before it, since nobody can name another.
  llvm::SmallVector<uint64_t, 2> copiedFrom(const llvm::CallBase &CB,
                                            uint64_t Key) const;

  /// To be called after the site with key \p Inlined was inlined into
  /// \p Caller: renames the calls that came with the callee's body.
  void onInlined(llvm::Function &Caller, uint64_t Inlined);

  /// Takes the keys off again: bitcode that is written later is as without them.
  void strip(llvm::Module &M) const;

private:
  /// A pass may duplicate a call within its function (unrolling, say). The first
  /// copy that is decided keeps the key, the others get successors.
  struct Claim {
    llvm::WeakVH Site;
    bool Gone = false; ///< Inlined away: no other call may take its key.
  };

  void tag(llvm::CallBase &CB, uint64_t Key, uint64_t Owner,
           llvm::MDNode *CopyOf = nullptr);

  unsigned Kind;
  llvm::DenseMap<uint64_t, Claim> Claims;
};

} // namespace nestor

#endif
