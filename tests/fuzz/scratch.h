#ifndef ELASTOR_TESTS_FUZZ_SCRATCH_H_
#define ELASTOR_TESTS_FUZZ_SCRATCH_H_

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace elastor {

// A message for people is one line. Returns false, as what it tells of was refused.
bool CheckOneLine(const Status& status);

// A folder of this process, in memory where there is a choice.
const std::string& FuzzFolder();

// A file there; the folders of a name with slashes must be. Returns its path.
std::string FileOf(const std::string& name, std::string_view bytes);

// A text that ends with its own hash in `member` (SealJson), sealed again: such bytes are of no use
// when every change of them is found by it.
std::string Resealed(std::string_view bytes, const std::string& member);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FUZZ_SCRATCH_H_
