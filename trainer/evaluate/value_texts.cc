#include "trainer/evaluate/value_texts.h"

#include <algorithm>
#include <string_view>

#include "core/base/file.h"
#include "core/base/mapped_file.h"
#include "trainer/data/saved_vocabulary.h"

namespace elastor {

Status FindValueTexts(const std::string& path, const DatasetInfo& data, int64_t field,
                      std::map<int64_t, std::string>* texts) {
  if (data.categorical[field].keyed) {
    for (auto& [key, text] : *texts) text = std::to_string(static_cast<uint64_t>(key));
    return OkStatus();
  }
  const int shares = data.categorical[field].shares;
  const std::string& owner = data.categorical[shares >= 0 ? shares : field].name;
  const std::string file = path + "/vocabulary/" + VocabularyFileName(owner);
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(file));
  if (texts->empty() || !there) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const MappedFile mapped,
                           MappedFile::Open(file, MappedFile::Links::kFollow));
  std::string_view lines(mapped.data(), mapped.bytes());
  // A file that ends early is whole all the same: the id is beyond its vocabulary.
  for (int64_t id = 1; id <= texts->rbegin()->first && !lines.empty(); ++id) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const auto text = texts->find(id);
    if (text != texts->end()) text->second = line.substr(0, line.find('\t'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return mapped.CheckReadable();
}

}  // namespace elastor
