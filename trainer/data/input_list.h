#ifndef ELASTOR_TRAINER_DATA_INPUT_LIST_H_
#define ELASTOR_TRAINER_DATA_INPUT_LIST_H_

#include <string>
#include <vector>

namespace elastor {

// Returns the paths that a flag lists between commas. A comma belongs to a name where no file has
// the part before it as its name, but one has a longer part.
std::vector<std::string> ListedInputs(const std::string& text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_INPUT_LIST_H_
