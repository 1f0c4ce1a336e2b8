#include "trainer/data/input_list.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace elastor {
namespace {

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::vector<std::string> ListedInputs(const std::string& text) {
  std::vector<std::string> inputs;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (!IsThere(text.substr(begin, end - begin))) {
      for (size_t longer = end; longer < text.size();) {
        longer = std::min(text.find(',', longer + 1), text.size());
        if (!IsThere(text.substr(begin, longer - begin))) continue;
        end = longer;
        break;
      }
    }
    if (end > begin) inputs.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return inputs;
}

}  // namespace elastor
