#include "trainer/prepare/guess/text_sample.h"

#include "core/base/text.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/text_source.h"

namespace elastor {
namespace {

constexpr int64_t kSampleBytes = 16 << 20;  // of text, of all files together

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const bool carriage_return = end > begin && text[end - 1] == '\r';
    lines.push_back(text.substr(begin, end - begin - carriage_return));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

int64_t TextSample::bytes() const {
  int64_t bytes = 0;
  for (const auto& file : lines) {
    for (const std::string& line : file) bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return bytes;
}

StatusOr<TextSample> ReadTextSample(const std::vector<std::string>& paths) {
  TextSample sample;
  sample.paths = paths;
  for (const std::string& path : paths) {
    ELASTOR_ASSIGN_OR_RETURN(const auto source, TextSource::Open(path));
    std::string text;
    const int64_t most = kSampleBytes / static_cast<int64_t>(paths.size());
    ELASTOR_RETURN_IF_ERROR(source->Next(most, &text));
    sample.whole = sample.whole && static_cast<int64_t>(text.size()) < most / 2;
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (text.empty()) return UserError(StrCat(path, ": is empty, expected rows"));
    sample.lines.push_back(SplitLines(text));
  }
  return sample;
}

}  // namespace elastor
