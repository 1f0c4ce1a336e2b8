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

// Writes the ids of the fields whose width is that of Id.
template <typename Id>
void EncodeIds(const DatasetInfo& info, const IdWidths& widths, const Rows& rows,
               const BlockSections& sections, int64_t heap_at, std::string* block) {
  constexpr bool kWide = sizeof(Id) == 8;
  const int64_t fields = info.categorical.size();
  std::vector<int64_t> columns;
  for (int64_t f = 0; f < fields; ++f) {
    if (widths.wide(info.categorical[f]) == kWide) columns.push_back(f);
  }
  Id* single = reinterpret_cast<Id*>(block->data() + sections.ids_at[kWide]);
  uint32_t* ends = reinterpret_cast<uint32_t*>(block->data() + sections.ends_at[kWide]);
  Id* heap = reinterpret_cast<Id*>(block->data() + heap_at);
  uint32_t heap_size = 0;
  if (rows.offsets.empty() && std::ssize(columns) == fields) {
    for (const int64_t id : rows.ids) *single++ = static_cast<Id>(id);
    return;
  }
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (const int64_t column : columns) {
      const int64_t bag = row * fields + column;
      if (!info.categorical[column].multi_hot) {
        *single++ = static_cast<Id>(rows.ids[rows.offsets.empty() ? bag : rows.offsets[bag]]);
        continue;
      }
      for (int64_t i = rows.offsets[bag]; i < rows.offsets[bag + 1]; ++i) {
        heap[heap_size++] = static_cast<Id>(rows.ids[i]);
      }
      *ends++ = heap_size;
    }
  }
}

// Returns how many ids the bags of 4-byte ids, then those of 8-byte ids, have.
std::array<int64_t, 2> HeapIds(const DatasetInfo& info, const IdWidths& widths, const Rows& rows) {
  std::array<int64_t, 2> ids = {0, 0};
  const int64_t fields = info.categorical.size();
  for (int64_t f = 0; f < fields; ++f) {
    if (!info.categorical[f].multi_hot) continue;
    int64_t& of_width = ids[widths.wide(info.categorical[f])];
    for (int64_t bag = f; bag < rows.rows * fields; bag += fields) {
      of_width += rows.offsets[bag + 1] - rows.offsets[bag];
    }
  }
  return ids;
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

// The heaps of a block, within it whatever its memory says.
struct Heaps {
  Heaps(const char* block, int64_t bytes, const BlockSections& sections, const IdWidths& widths,
        int64_t rows) {
    int64_t at = sections.heap_at;
    for (int width = 0; width < 2; ++width) {
      const int64_t id_bytes = width == 0 ? 4 : 8, bags = rows * widths.bags[width];
      begin[width] = block + at;
      ends[width] = {reinterpret_cast<const uint32_t*>(block + sections.ends_at[width]),
                     (bytes - at) / id_bytes};
      at += bags == 0 ? 0 : RoundUpTo8(ends[width][bags - 1] * id_bytes);
    }
    end = at;
  }
  const char* begin[2];
  BagEnds ends[2];
  int64_t end;  // of both, in the block
};

template <typename Id>
std::string IdMistake(const DatasetInfo& info, const IdWidths& widths, const char* block,
                      const BlockSections& sections, const Heaps& heaps, int64_t rows) {
  constexpr bool kWide = sizeof(Id) == 8;
  std::vector<const DatasetInfo::Categorical*> singles, bags;
  for (const DatasetInfo::Categorical& field : info.categorical) {
    if (widths.wide(field) == kWide) (field.multi_hot ? bags : singles).push_back(&field);
  }
  // Of keyed fields all ids are right: 0 - 1 is the largest.
  const auto last_of = [](const auto* field) { return static_cast<Id>(field->ids - 1); };
  // One pass without branches, for this is done for every row that is trained on.
  std::vector<Id> last;
  for (const auto* field : singles) last.push_back(last_of(field));
  const Id* const ids = reinterpret_cast<const Id*>(block + sections.ids_at[kWide]);
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
  const Id* const heap = reinterpret_cast<const Id*>(heaps.begin[kWide]);
  const int64_t bag_width = static_cast<int64_t>(bags.size());
  int64_t at = 0;
  for (int64_t bag = 0; bag < rows * bag_width; ++bag) {
    const DatasetInfo::Categorical& field = *bags[bag % bag_width];
    for (const int64_t end = heaps.ends[kWide][bag]; at < end; ++at) {
      if (heap[at] > last_of(&field)) return IdOutsideTable(field, bag / bag_width, heap[at]);
    }
  }
  return "";
}

// Whether bags follow one another and fill the block.
bool BagsFit(const char* block, int64_t bytes, const BlockSections& sections,
             const IdWidths& widths, int64_t rows) {
  if (bytes < sections.heap_at) return false;
  const Heaps heaps(block, bytes, sections, widths, rows);
  for (int width = 0; width < 2; ++width) {
    const auto* const ends = reinterpret_cast<const uint32_t*>(block + sections.ends_at[width]);
    const int64_t bags = rows * widths.bags[width];
    if (!std::is_sorted(ends, ends + bags)) return false;
    if (bags > 0 && ends[bags - 1] > heaps.ends[width].heap_ids) return false;
  }
  return heaps.end == bytes;
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

IdWidths::IdWidths(const DatasetInfo& info)
    : keys_(info.has_keys()), all_wide_(IdBytes(info) == 8) {
  for (const DatasetInfo::Categorical& field : info.categorical) {
    ++(field.multi_hot ? bags : singles)[wide(field)];
  }
}

BlockSections::BlockSections(const DatasetInfo& info, int64_t rows) {
  const IdWidths widths(info);
  weights_at = RoundUpTo8(rows * info.label_count() * 4);
  groups_at = weights_at + (info.has_weights ? RoundUpTo8(rows * 4) : 0);
  times_at = groups_at + (info.has_groups ? rows * 8 : 0);
  numeric_at = times_at + (info.has_times ? rows * 8 : 0);
  pixels_at = numeric_at + RoundUpTo8(rows * static_cast<int64_t>(info.numeric.size()) * 4);
  ids_at[0] = pixels_at + RoundUpTo8(rows * info.image.pixels());
  ids_at[1] = ids_at[0] + RoundUpTo8(rows * widths.singles[0] * 4);
  ends_at[0] = ids_at[1] + rows * widths.singles[1] * 8;
  ends_at[1] = ends_at[0] + RoundUpTo8(rows * widths.bags[0] * 4);
  heap_at = ends_at[1] + RoundUpTo8(rows * widths.bags[1] * 4);
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
  const IdWidths widths(info);
  const std::array<int64_t, 2> heap_ids = HeapIds(info, widths, rows);
  CHECK_LE(std::max(heap_ids[0], heap_ids[1]), int64_t{std::numeric_limits<uint32_t>::max()});
  const int64_t wide_heap_at = sections.heap_at + RoundUpTo8(heap_ids[0] * 4);
  std::string block(wide_heap_at + heap_ids[1] * 8, '\0');
  if (rows.rows == 0) return block;
  PutColumn(rows.labels, 0, &block);
  PutColumn(rows.weights, sections.weights_at, &block);
  PutColumn(rows.groups, sections.groups_at, &block);
  PutColumn(rows.times, sections.times_at, &block);
  PutColumn(rows.numeric, sections.numeric_at, &block);
  PutColumn(rows.pixels, sections.pixels_at, &block);
  if (widths.singles[0] + widths.bags[0] > 0) {
    EncodeIds<uint32_t>(info, widths, rows, sections, sections.heap_at, &block);
  }
  if (widths.singles[1] + widths.bags[1] > 0) {
    EncodeIds<uint64_t>(info, widths, rows, sections, wide_heap_at, &block);
  }
  return block;
}

std::string BlockMistake(const DatasetInfo& info, const char* block, int64_t bytes, int64_t rows) {
  const BlockSections sections(info, rows);
  const IdWidths widths(info);
  if (!BagsFit(block, bytes, sections, widths, rows)) {
    return StrCat("its bags do not fill its ", bytes, " bytes; ", kMetaFile, " is of other data");
  }
  const Heaps heaps(block, bytes, sections, widths, rows);
  const std::string mistake = IdMistake<uint32_t>(info, widths, block, sections, heaps, rows);
  return mistake.empty() ? IdMistake<uint64_t>(info, widths, block, sections, heaps, rows)
                         : mistake;
}

BlockReader::BlockReader(const DatasetInfo& info, int64_t count, Rows* rows)
    : info_(info), widths_(info), full_(info, info.rows_per_block), rows_(rows) {
  for (const DatasetInfo::Categorical& field : info.categorical) {
    fields_.push_back({field.multi_hot, widths_.wide(field)});
  }
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
  if (MultiHotFields(info) > 0) {
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
  AppendIds(block, bytes, block_rows, sections, row);
}

void BlockReader::AppendIds(const char* block, int64_t bytes, int64_t block_rows,
                            const BlockSections& sections, int64_t row) {
  const uint32_t* narrow = reinterpret_cast<const uint32_t*>(block + sections.ids_at[0]);
  const uint64_t* wide = reinterpret_cast<const uint64_t*>(block + sections.ids_at[1]);
  narrow += row * widths_.singles[0];
  wide += row * widths_.singles[1];
  std::vector<int64_t>& ids = rows_->ids;
  if (widths_.bags[0] + widths_.bags[1] == 0) {
    if (widths_.singles[1] == 0) {
      ids.insert(ids.end(), narrow, narrow + widths_.singles[0]);
      return;
    }
    for (const Field& field : fields_) {
      ids.push_back(static_cast<int64_t>(field.wide ? *wide++ : *narrow++));
    }
    return;
  }
  const Heaps heaps(block, bytes, sections, widths_, block_rows);
  int64_t bags[2] = {row * widths_.bags[0], row * widths_.bags[1]};
  for (const Field& field : fields_) {
    if (!field.bag) {
      ids.push_back(static_cast<int64_t>(field.wide ? *wide++ : *narrow++));
    } else {
      const BagEnds& ends = heaps.ends[field.wide];
      const int64_t bag = bags[field.wide]++;
      const int64_t end = ends[bag];
      const int64_t begin = bag == 0 ? 0 : std::min(ends[bag - 1], end);
      if (field.wide) {
        const auto* heap = reinterpret_cast<const uint64_t*>(heaps.begin[1]);
        ids.insert(ids.end(), heap + begin, heap + end);
      } else {
        const auto* heap = reinterpret_cast<const uint32_t*>(heaps.begin[0]);
        ids.insert(ids.end(), heap + begin, heap + end);
      }
    }
    rows_->offsets.push_back(static_cast<int64_t>(ids.size()));
  }
}

}  // namespace elastor
