//===- LogFile.h - The file that takes a module's log ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One -nestor-log serves a whole build: a folder gets a log for each module, and
// a file that holds the log of another module is left alone.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_LOGFILE_H
#define NESTOR_LOGFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>

namespace nestor {

/// Where the log of the module with identifier \p Module goes if the user asked
/// for \p Log: that file, or one in that folder, which is made if it is missing
/// and \p Log ends in a slash.
llvm::Expected<std::string> logPath(llvm::StringRef Log, llvm::StringRef Module);

/// Opens \p Path, empty, for the log of \p Module, which must become readable by
/// a flush before another module's log is opened. Waits for a process that writes
/// there. Fails if the file holds the log of another module.
llvm::Expected<std::unique_ptr<llvm::raw_fd_ostream>>
openLog(llvm::StringRef Path, llvm::StringRef Module);

} // namespace nestor

#endif
