#include "trainer/evaluate/value_texts.h"

#include <fstream>

#include "core/base/file.h"
#include "trainer/data/saved_vocabulary.h"

namespace elastor {

Status FindValueTexts(const std::string& path, const DatasetInfo& data, int64_t field,
                      std::map<int64_t, std::string>* texts) {
  const int shares = data.categorical[field].shares;
  const std::string& owner = data.categorical[shares >= 0 ? shares : field].name;
  const std::string file = path + "/vocabulary/" + VocabularyFileName(owner);
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(file));
  if (texts->empty() || !there) return OkStatus();
  std::ifstream lines(file);
  std::string line;
  for (int64_t id = 1; id <= texts->rbegin()->first && std::getline(lines, line); ++id) {
    const auto text = texts->find(id);
    if (text != texts->end()) text->second = line.substr(0, line.find('\t'));
  }
  // A file that ends early is whole all the same: the id is beyond its vocabulary.
  return lines.bad() || !lines.is_open() ? MachineError(file + ": cannot be read") : OkStatus();
}

}  // namespace elastor
