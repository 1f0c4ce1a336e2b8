#ifndef ELASTOR_TRAINER_DATA_INPUT_LIST_H_
#define ELASTOR_TRAINER_DATA_INPUT_LIST_H_

#include <functional>
#include <string>
#include <vector>

namespace elastor {

// Returns the paths that a flag lists between commas. A comma belongs to a name where no file has
// the part before it as its name, but one has a longer part. In place of a folder stand the files
// in it, but for those that begin with . or _, and in place of a pattern with *, ? or [ that is no
// file's name the files and folders that it fits; both in order of their names. What there is
// nothing for stays as it is. `warn`: called for a folder with folders beside its files.
std::vector<std::string> ListedInputs(
    const std::string& text, const std::function<void(const std::string&)>& warn = nullptr);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_INPUT_LIST_H_
