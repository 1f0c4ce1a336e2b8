#include "trainer/data/input_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace elastor {
namespace {

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(error) && name[0] != '.' && name[0] != '_') {
      files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> FilesLike(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

// The files that a path stands for.
std::vector<std::string> FilesOf(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path, error)) {
    files = FilesIn(path);
  } else if (!IsThere(path) && path.find_first_of("*?[") != path.npos) {
    files = FilesLike(path);
  }
  if (files.empty()) files.push_back(path);
  return files;
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
    if (end > begin) {
      const std::vector<std::string> files = FilesOf(text.substr(begin, end - begin));
      inputs.insert(inputs.end(), files.begin(), files.end());
    }
    begin = end + 1;
  }
  return inputs;
}

}  // namespace elastor
