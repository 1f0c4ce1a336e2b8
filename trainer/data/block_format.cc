#include "trainer/data/block_format.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/log.h"
#include "core/base/sizes.h"
#include "core/base/text.h"

namespace elastor {
namespace {

int64_t MultiHotFields(const DatasetInfo& info) {
  return std::count_if(info.categorical.begin(), info.categorical.end(),
                       [](const DatasetInfo::Categorical& field) { return field.multi_hot; });
}

// Copies a column to its place in a block; an absent one is empty.
template <typename T>
void PutColumn(const std::vector<T>& column, int64_t at, std::string* block) {
  if (!column.empty()) std::memcpy(block->data() + at, column.data(), column.size() * sizeof(T));
}

// Appends value `row` of a column of a block, when the data set has the column.
template <typename T>
void AppendValue(bool has, const char* column, int64_t row, std::vector<T>* values) {
  if (has) values->push_back(reinterpret_cast<const T*>(column)[row]);
}

template <typename Id>
void EncodeIds(const DatasetInfo& info, const Rows& rows, const BlockSections& sections,
               std::string* block) {
  const int64_t fields = info.categorical.size();
  Id* single = reinterpret_cast<Id*>(block->data() + sections.ids_at);
  uint32_t* ends = reinterpret_cast<uint32_t*>(block->data() + sections.ends_at);
  Id* heap = reinterpret_cast<Id*>(block->data() + sections.heap_at);
  uint32_t heap_size = 0;
  for (int64_t bag = 0; bag < rows.rows * fields; ++bag) {
    if (!info.categorical[bag % fields].multi_hot) {
      *single++ = static_cast<Id>(rows.ids[rows.offsets.empty() ? bag : rows.offsets[bag]]);
      continue;
    }
    for (int64_t i = rows.offsets[bag]; i < rows.offsets[bag + 1]; ++i) {
      heap[heap_size++] = static_cast<Id>(rows.ids[i]);
    }
    *ends++ = heap_size;
  }
}

// Where bags end in a heap, never beyond it; each is read from memory, which may change, once.
struct BagEnds {
  const volatile uint32_t* ends;
  int64_t heap_ids;
  int64_t operator[](int64_t bag) const { return std::min<int64_t>(ends[bag], heap_ids); }
};

std::string IdOutsideTable(const DatasetInfo::Categorical& field, int64_t row, uint64_t id) {
  return StrCat("row ", row, " of the block, field ", field.name, ": found id ", id,
                "; expected less than ", field.ids);
}

template <typename Id>
std::string IdMistake(const DatasetInfo& info, const char* block, int64_t bytes,
                      const BlockSections& sections, int64_t rows) {
  std::vector<const DatasetInfo::Categorical*> singles, bags;
  for (const DatasetInfo::Categorical& field : info.categorical) {
    (field.multi_hot ? bags : singles).push_back(&field);
  }
  // One pass without branches, for this is done for every row that is trained on.
  std::vector<Id> last;
  for (const auto* field : singles) last.push_back(static_cast<Id>(field->ids - 1));
  const Id* const ids = reinterpret_cast<const Id*>(block + sections.ids_at);
  const int64_t width = static_cast<int64_t>(singles.size());
  int64_t outside = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int any = 0;
    for (int64_t f = 0; f < width; ++f) any |= ids[row * width + f] > last[f];
    outside += any;
  }
  for (int64_t i = 0; outside > 0 && i < rows * width; ++i) {
    if (ids[i] > last[i % width]) return IdOutsideTable(*singles[i % width], i / width, ids[i]);
  }
  const BagEnds ends = {reinterpret_cast<const uint32_t*>(block + sections.ends_at),
                        (bytes - sections.heap_at) / static_cast<int64_t>(sizeof(Id))};
  const Id* const heap = reinterpret_cast<const Id*>(block + sections.heap_at);
  const int64_t bag_width = static_cast<int64_t>(bags.size());
  int64_t at = 0;
  for (int64_t bag = 0; bag < rows * bag_width; ++bag) {
    const DatasetInfo::Categorical& field = *bags[bag % bag_width];
    for (const int64_t end = ends[bag]; at < end; ++at) {
      if (heap[at] > static_cast<Id>(field.ids - 1)) {
        return IdOutsideTable(field, bag / bag_width, heap[at]);
      }
    }
  }
  return "";
}

// Whether bags follow one another and fill the block.
bool BagsFit(const char* block, const BlockSections& sections, int64_t bytes, int64_t bags,
             int64_t id_bytes) {
  if (bytes < sections.heap_at) return false;
  const uint32_t* const ends = reinterpret_cast<const uint32_t*>(block + sections.ends_at);
  if (!std::is_sorted(ends, ends + bags)) return false;
  const int64_t heap_ids = bags == 0 ? 0 : ends[bags - 1];
  return sections.heap_at + RoundUpTo8(heap_ids * id_bytes) == bytes;
}

}  // namespace

const char* SplitName(Split split) {
  static constexpr const char* kNames[] = {"train", "validation", "test"};
  return kNames[static_cast<int>(split)];
}

std::string SplitFileName(Split split) { return std::string(SplitName(split)) + ".rows"; }

int IdBytes(const DatasetInfo& info) {
  const bool wide = std::any_of(
      info.categorical.begin(), info.categorical.end(),
      [](const DatasetInfo::Categorical& field) { return field.ids > (int64_t{1} << 32); });
  return wide ? 8 : 4;
}

BlockSections::BlockSections(const DatasetInfo& info, int64_t rows) {
  const int64_t multi = MultiHotFields(info);
  const int64_t single = static_cast<int64_t>(info.categorical.size()) - multi;
  weights_at = RoundUpTo8(rows * info.label_count() * 4);
  groups_at = weights_at + (info.has_weights ? RoundUpTo8(rows * 4) : 0);
  times_at = groups_at + (info.has_groups ? rows * 8 : 0);
  numeric_at = times_at + (info.has_times ? rows * 8 : 0);
  pixels_at = numeric_at + RoundUpTo8(rows * static_cast<int64_t>(info.numeric.size()) * 4);
  ids_at = pixels_at + RoundUpTo8(rows * info.image.pixels());
  ends_at = ids_at + RoundUpTo8(rows * single * IdBytes(info));
  heap_at = ends_at + RoundUpTo8(rows * multi * 4);
}

std::string EncodeBlock(const DatasetInfo& info, const Rows& rows) {
  const int64_t bags = rows.rows * static_cast<int64_t>(info.categorical.size());
  const int64_t multi = MultiHotFields(info);
  CHECK_EQ(static_cast<int64_t>(rows.labels.size()), rows.rows * info.label_count());
  CHECK_EQ(rows.numeric.size(), rows.rows * info.numeric.size());
  CHECK_EQ(static_cast<int64_t>(rows.pixels.size()), rows.rows * info.image.pixels());
  CHECK_EQ(static_cast<int64_t>(rows.weights.size()), info.has_weights ? rows.rows : 0);
  CHECK_EQ(static_cast<int64_t>(rows.groups.size()), info.has_groups ? rows.rows : 0);
  CHECK_EQ(static_cast<int64_t>(rows.times.size()), info.has_times ? rows.rows : 0);
  CHECK_LE(rows.rows, info.rows_per_block);
  if (multi > 0) CHECK_EQ(static_cast<int64_t>(rows.offsets.size()), bags + 1);
  if (multi == 0) CHECK_EQ(static_cast<int64_t>(rows.ids.size()), bags);
  const BlockSections sections(info, rows.rows);
  const int64_t single_ids = bags - multi * rows.rows;
  const int64_t heap_ids = static_cast<int64_t>(rows.ids.size()) - single_ids;
  CHECK_LE(heap_ids, int64_t{std::numeric_limits<uint32_t>::max()});
  std::string block(sections.heap_at + RoundUpTo8(heap_ids * IdBytes(info)), '\0');
  if (rows.rows == 0) return block;
  PutColumn(rows.labels, 0, &block);
  PutColumn(rows.weights, sections.weights_at, &block);
  PutColumn(rows.groups, sections.groups_at, &block);
  PutColumn(rows.times, sections.times_at, &block);
  PutColumn(rows.numeric, sections.numeric_at, &block);
  PutColumn(rows.pixels, sections.pixels_at, &block);
  if (IdBytes(info) == 8) {
    EncodeIds<uint64_t>(info, rows, sections, &block);
  } else {
    EncodeIds<uint32_t>(info, rows, sections, &block);
  }
  return block;
}

std::string BlockMistake(const DatasetInfo& info, const char* block, int64_t bytes, int64_t rows) {
  const BlockSections sections(info, rows);
  if (!BagsFit(block, sections, bytes, rows * MultiHotFields(info), IdBytes(info))) {
    return StrCat("its bags do not fill its ", bytes, " bytes; ", kMetaFile, " is of other data");
  }
  return IdBytes(info) == 8 ? IdMistake<uint64_t>(info, block, bytes, sections, rows)
                            : IdMistake<uint32_t>(info, block, bytes, sections, rows);
}

BlockReader::BlockReader(const DatasetInfo& info, int64_t count, Rows* rows)
    : info_(info),
      id_bytes_(IdBytes(info)),
      multi_(MultiHotFields(info)),
      full_(info, info.rows_per_block),
      rows_(rows) {
  single_ = static_cast<int64_t>(info.categorical.size()) - multi_;
  for (int byte = 0; byte < 256; ++byte) {
    pixel_values_[byte] = static_cast<float>((byte / 255.0 - info.image.mean) / info.image.stddev);
  }
  rows->rows = 0;
  rows->labels.clear();
  rows->numeric.clear();
  rows->ids.clear();
  rows->offsets.clear();
  rows->weights.clear();
  rows->groups.clear();
  rows->times.clear();
  rows->labels.reserve(count * info.label_count());
  rows->numeric.reserve(count * info.numeric_count());
  rows->ids.reserve(count * info.categorical.size());
  if (multi_ > 0) {
    rows->offsets.reserve(count * info.categorical.size() + 1);
    rows->offsets.push_back(0);
  }
}

void BlockReader::Append(const char* block, int64_t bytes, int64_t block_rows, int64_t row) {
  const BlockSections sections =
      block_rows == info_.rows_per_block ? full_ : BlockSections(info_, block_rows);
  const int64_t numeric = info_.numeric.size();
  const int64_t label_count = info_.label_count();
  const float* labels = reinterpret_cast<const float*>(block) + row * label_count;
  const float* values = reinterpret_cast<const float*>(block + sections.numeric_at) + row * numeric;
  ++rows_->rows;
  rows_->labels.insert(rows_->labels.end(), labels, labels + label_count);
  AppendValue(info_.has_weights, block + sections.weights_at, row, &rows_->weights);
  AppendValue(info_.has_groups, block + sections.groups_at, row, &rows_->groups);
  AppendValue(info_.has_times, block + sections.times_at, row, &rows_->times);
  rows_->numeric.insert(rows_->numeric.end(), values, values + numeric);
  const uint8_t* const pixels =
      reinterpret_cast<const uint8_t*>(block + sections.pixels_at) + row * info_.image.pixels();
  for (int64_t i = 0; i < info_.image.pixels(); ++i) {
    rows_->numeric.push_back(pixel_values_[pixels[i]]);
  }
  if (id_bytes_ == 8) {
    AppendIds<uint64_t>(block, bytes, sections, row);
  } else {
    AppendIds<uint32_t>(block, bytes, sections, row);
  }
}

template <typename Id>
void BlockReader::AppendIds(const char* block, int64_t bytes, const BlockSections& sections,
                            int64_t row) {
  const Id* single = reinterpret_cast<const Id*>(block + sections.ids_at) + row * single_;
  if (multi_ == 0) {
    rows_->ids.insert(rows_->ids.end(), single, single + single_);
    return;
  }
  const BagEnds ends = {reinterpret_cast<const uint32_t*>(block + sections.ends_at),
                        (bytes - sections.heap_at) / static_cast<int64_t>(sizeof(Id))};
  const Id* heap = reinterpret_cast<const Id*>(block + sections.heap_at);
  int64_t bag = row * multi_;
  for (const DatasetInfo::Categorical& field : info_.categorical) {
    if (field.multi_hot) {
      const int64_t end = ends[bag];
      const int64_t begin = bag == 0 ? 0 : std::min(ends[bag - 1], end);
      rows_->ids.insert(rows_->ids.end(), heap + begin, heap + end);
      ++bag;
    } else {
      rows_->ids.push_back(static_cast<int64_t>(*single++));
    }
    rows_->offsets.push_back(static_cast<int64_t>(rows_->ids.size()));
  }
}

}  // namespace elastor
