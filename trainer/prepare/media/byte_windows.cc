#include "trainer/prepare/media/byte_windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/leaves.h"
#include "core/base/text.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/media/page_text.h"
#include "trainer/prepare/rows/row_blocks.h"
#include "trainer/prepare/split_ranges.h"

namespace elastor {
namespace {

constexpr int64_t kReadBytes = 1 << 20;

StatusOr<std::string> TextOfFile(const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  ELASTOR_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (IsPage(text)) {
    StatusOr<std::string> page = TextOfPage(text);
    return page.ok() ? page : UserError(StrCat(path, ": ", page.status().message()));
  }
  text.clear();
  std::string piece;
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source, TextSource::Open(path));
  do {
    ELASTOR_RETURN_IF_ERROR(source->Next(kReadBytes, &piece));
    text += piece;
  } while (!piece.empty());
  return text;
}

StatusOr<std::string> TextOfFiles(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string own, TextOfFile(path));
    text += own;
  }
  return text;
}

// Row `row` of a text.
void AppendWindow(std::string_view text, int64_t length, int64_t row, Rows* rows) {
  constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
  const int64_t size = static_cast<int64_t>(text.size());
  const auto byte = [&](int64_t at) { return static_cast<uint8_t>(text[at]); };
  for (int64_t at = row * length; at < (row + 1) * length; ++at) {
    rows->ids.push_back(at < size ? byte(at) : 0);
    rows->labels.push_back(at + 1 < size ? static_cast<float>(byte(at + 1)) : kMissing);
  }
  ++rows->rows;
}

}  // namespace

DatasetInfo TextInfo(const Schema& schema) {
  DatasetInfo info = ByteWindows(schema.text().length());
  info.name = schema.name();
  info.rows_per_block = schema.rows_per_block();
  return info;
}

Status WriteByteWindows(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                        PrepareReport* report) {
  const int64_t length = options.schema.text().length();
  const bool by_input = !options.validation_inputs.empty() || !options.test_inputs.empty();
  const std::vector<std::string>* const paths[] = {&options.inputs, &options.validation_inputs,
                                                   &options.test_inputs};
  for (int source = 0; source < (by_input ? 3 : 1); ++source) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string text, TextOfFiles(*paths[source]));
    // The first byte is context alone.
    const int64_t labels = std::max<int64_t>(static_cast<int64_t>(text.size()) - 1, 0);
    const int64_t windows = (labels + length - 1) / length;
    if (windows == 0 && !paths[source]->empty()) {
      return UserError(paths[source]->front() + ": no text; expected at least two bytes");
    }
    report->text_bytes += labels;
    std::array<Range, 3> splits = {};
    if (by_input) {
      splits[source] = {0, windows};
    } else {
      splits = SplitRanges(options.schema.split(), windows);
    }
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
      const auto append = [&](int64_t row, Rows* rows) { AppendWindow(text, length, row, rows); };
      ELASTOR_RETURN_IF_ERROR(
          WriteRowBlocks(split, splits[static_cast<int>(split)], append, pool, writer));
    }
  }
  return writer->Commit({});
}

}  // namespace elastor
