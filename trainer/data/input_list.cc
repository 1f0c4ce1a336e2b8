#include "trainer/data/input_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace elastor {
namespace {

using Warn = std::function<void(const std::string&)>;

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Appends the files in a folder, in order of their names.
void AddFilesIn(const std::string& folder, const Warn& warn, std::vector<std::string>* inputs) {
  std::vector<std::string> files;
  size_t folders = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name[0] == '.' || name[0] == '_') continue;
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
    folders += entry.is_directory(error);
  }
  std::ranges::sort(files);
  if (files.empty()) files.push_back(folder);
  if (folders > 0 && files[0] != folder && warn) {
    warn(folder + ": the files in its folders are not read; '" + folder + "/*/*' stands for them");
  }
  inputs->insert(inputs->end(), files.begin(), files.end());
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

// Appends the files that a path stands for.
void AddFilesOf(const std::string& path, const Warn& warn, std::vector<std::string>* inputs) {
  std::error_code error;
  std::vector<std::string> found;
  if (!IsThere(path) && path.find_first_of("*?[") != path.npos) found = FilesLike(path);
  if (found.empty()) found.push_back(path);
  for (const std::string& file : found) {
    if (std::filesystem::is_directory(file, error)) {
      AddFilesIn(file, warn, inputs);
    } else {
      inputs->push_back(file);
    }
  }
}

}  // namespace

std::vector<std::string> ListedInputs(const std::string& text, const Warn& warn) {
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
      AddFilesOf(text.substr(begin, end - begin), warn, &inputs);
    }
    begin = end + 1;
  }
  return inputs;
}

}  // namespace elastor
