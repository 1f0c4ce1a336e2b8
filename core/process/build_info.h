#ifndef ELASTOR_CORE_PROCESS_BUILD_INFO_H_
#define ELASTOR_CORE_PROCESS_BUILD_INFO_H_

#include <string>

namespace elastor {

// Returns version and commit of this program: "1.0.0 (96945dbb1234)", or "1.0.0 (96945dbb1234,
// dirty)" if a source differed from the commit. "1.0.0 (commit unknown)": the program was not
// stamped, as in tests (build.bzl, program).
std::string BuildName();

// Whether BuildName tells every source of this program.
bool IsBuiltFromCommit();

// Returns the text of --version: a line "PROGRAM BuildName", then the compiler and the numerics.
std::string VersionText(const std::string& program);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_BUILD_INFO_H_
