#include "trainer/prepare/write_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/canonical_flush.h"
#include "trainer/data/block_format.h"
#include "trainer/prepare/rows/chunk_times.h"
#include "trainer/prepare/rows/row_blocks.h"

namespace elastor {
namespace {

constexpr int64_t kBatchBlocksPerThread = 4;

class BlockPass {
 public:
  BlockPass(const PrepareOptions& options, const PreparePlan& plan, const TextPassResult& text,
            const SplitPlaces& places, const Encoding& encoding, const WorkFile& rows,
            const WorkFile& ids, ThreadPool* pool, DatasetWriter* writer)
      : options_(options),
        plan_(plan),
        text_(text),
        places_(places),
        encoding_(encoding),
        rows_(rows),
        ids_(ids),
        pool_(pool),
        writer_(writer) {}

  Status Run();

 private:
  Status WriteSplit(Split split);
  Status WriteSorted(Split split);
  int64_t RowsAtOnce() const;
  Status Encode(int split, const Range& rows, UnpackedChunk* chunk, int64_t* loaded,
                std::string* block) const;
  // Appends the rows at `rows` of the chunk to *out.
  void Gather(const UnpackedChunk& chunk, uint32_t segment, const std::vector<uint32_t>& rows,
              Rows* out) const;
  void GatherNumeric(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows,
                     Rows* out) const;
  template <typename Id>
  void GatherSingles(const UnpackedChunk& chunk, uint32_t segment,
                     const std::vector<uint32_t>& rows, Rows* out) const;
  template <typename Id>
  void GatherBags(const UnpackedChunk& chunk, uint32_t segment, const std::vector<uint32_t>& rows,
                  Rows* out) const;
  template <typename Id>
  const Id* IdsOf(uint32_t segment, size_t column) const {
    return reinterpret_cast<const Id*>(ids_.data() + encoding_.ids_at[segment][column]);
  }
  void AppendRow(const Rows& from, int64_t row, Rows* to) const;
  void Report(int split, int64_t rows);
  void ForgetUsedIds(int64_t chunk);

  const PrepareOptions& options_;
  const PreparePlan& plan_;
  const TextPassResult& text_;
  const SplitPlaces& places_;
  const Encoding& encoding_;
  const WorkFile& rows_;
  const WorkFile& ids_;
  ThreadPool* const pool_;
  DatasetWriter* const writer_;
  int64_t rows_done_ = 0;
  // Since ids were last forgotten, at most: segments, and the bytes of their ids.
  std::vector<bool> touched_;
  int64_t touched_bytes_ = 0;
  int64_t touched_chunk_ = 0;
};

void BlockPass::GatherNumeric(const UnpackedChunk& chunk, const std::vector<uint32_t>& rows,
                              Rows* out) const {
  const size_t fields = plan_.numeric.size(), first = out->numeric.size();
  out->numeric.resize(first + rows.size() * fields);
  std::array<float, 256> scaled;
  for (size_t field = 0; field < fields; ++field) {
    const PackedColumn& column = chunk.numeric(static_cast<int64_t>(field));
    const NumericScale& scale = encoding_.scales[field];
    const auto scale_value = [&](double value) {
      return CanonicalCast<float>((value - scale.mean) / scale.stddev);
    };
    float* to = out->numeric.data() + first + field;
    if (column.integral() && column.width() == 1) {
      scaled[0] = std::nanf("");
      for (int code = 1; code < 256; ++code) {
        scaled[code] = scale_value(static_cast<double>(column.least() + code - 1));
      }
      for (size_t i = 0; i < rows.size(); ++i) to[i * fields] = scaled[column.Code(rows[i])];
      continue;
    }
    for (size_t i = 0; i < rows.size(); ++i) to[i * fields] = scale_value(column.Numeric(rows[i]));
  }
}

template <typename Id>
void BlockPass::GatherSingles(const UnpackedChunk& chunk, uint32_t segment,
                              const std::vector<uint32_t>& rows, Rows* out) const {
  const size_t columns = plan_.ids.size(), first = out->ids.size();
  out->ids.resize(first + rows.size() * columns);
  // So many rows' ids stay in a core's first cache.
  constexpr size_t kRowsAtOnce = 64;
  for (size_t begin = 0; begin < rows.size(); begin += kRowsAtOnce) {
    const size_t end = std::min(begin + kRowsAtOnce, rows.size());
    for (size_t column = 0; column < columns; ++column) {
      const Id* ids = IdsOf<Id>(segment, column);
      const PackedColumn& numbers = chunk.numbers(static_cast<int64_t>(column));
      int64_t* to = out->ids.data() + first + column;
      const bool keyed = plan_.ids[column].keyed;
      for (size_t i = begin; i < end; ++i) {
        const uint64_t number = numbers.Integer(rows[i]);
        to[i * columns] = static_cast<int64_t>(keyed ? number : ids[number]);
      }
    }
  }
}

template <typename Id>
void BlockPass::GatherBags(const UnpackedChunk& chunk, uint32_t segment,
                           const std::vector<uint32_t>& rows, Rows* out) const {
  for (const uint32_t row : rows) {
    for (size_t column = 0; column < plan_.ids.size(); ++column) {
      const Id* ids = IdsOf<Id>(segment, column);
      const PackedColumn& numbers = chunk.numbers(static_cast<int64_t>(column));
      uint32_t begin = row, end = row + 1;
      if (plan_.ids[column].bag) {
        const std::vector<uint32_t>& ends = chunk.ends(static_cast<int64_t>(column));
        begin = row == 0 ? 0 : ends[row - 1];
        end = ends[row];
      }
      for (uint32_t i = begin; i < end; ++i) {
        const uint64_t number = numbers.Integer(i);
        out->ids.push_back(static_cast<int64_t>(plan_.ids[column].keyed ? number : ids[number]));
      }
      out->offsets.push_back(static_cast<int64_t>(out->ids.size()));
    }
  }
}

void BlockPass::Gather(const UnpackedChunk& chunk, uint32_t segment,
                       const std::vector<uint32_t>& rows, Rows* out) const {
  out->rows += static_cast<int64_t>(rows.size());
  for (const uint32_t row : rows) {
    for (size_t i = 0; i < plan_.labels.size(); ++i) {
      out->labels.push_back(chunk.label(row, static_cast<int64_t>(i)));
    }
  }
  for (size_t i = 0; plan_.weights && i < rows.size(); ++i) {
    out->weights.push_back(chunk.weight(rows[i]));
  }
  for (size_t i = 0; plan_.groups && i < rows.size(); ++i) {
    out->groups.push_back(chunk.group(rows[i]));
  }
  for (size_t i = 0; plan_.times && i < rows.size(); ++i) out->times.push_back(chunk.time(rows[i]));
  GatherNumeric(chunk, rows, out);
  const bool wide = encoding_.id_bytes == 8;
  if (plan_.bags == 0) {
    wide ? GatherSingles<uint64_t>(chunk, segment, rows, out)
         : GatherSingles<uint32_t>(chunk, segment, rows, out);
  } else {
    wide ? GatherBags<uint64_t>(chunk, segment, rows, out)
         : GatherBags<uint32_t>(chunk, segment, rows, out);
  }
}

// `chunk` holds the chunk of number *loaded, and afterwards the last one used.
Status BlockPass::Encode(int split, const Range& rows, UnpackedChunk* chunk, int64_t* loaded,
                         std::string* block) const {
  Rows gathered;
  if (plan_.bags > 0) gathered.offsets.push_back(0);
  std::vector<uint32_t> places;
  int64_t number = places_.ChunkOfRow(split, rows.begin);
  for (int64_t row = rows.begin; row < rows.end; ++number) {
    const int64_t first = places_.first(split, number);
    const int64_t end = std::min(rows.end, first + places_.count(split, number));
    if (end == row) continue;
    if (*loaded != number) ELASTOR_RETURN_IF_ERROR(chunk->Read(rows_, text_.chunks[number]));
    *loaded = number;
    places_.Select(*chunk, split, number, {row - first, end - first}, &places);
    Gather(*chunk, text_.chunks[number].segment, places, &gathered);
    row = end;
  }
  *block = EncodeBlock(writer_->info(), gathered);
  return OkStatus();
}

// Gives back the memory behind ids when the segments of chunks up to `chunk`, and those before
// since the last time, have a good part of what may be used.
void BlockPass::ForgetUsedIds(int64_t chunk) {
  touched_.resize(text_.runs.size(), false);
  for (; touched_chunk_ <= chunk; ++touched_chunk_) {
    const uint32_t segment = text_.chunks[touched_chunk_].segment;
    if (touched_[segment]) continue;
    touched_[segment] = true;
    for (const ValueRun& run : text_.runs[segment]) {
      touched_bytes_ += run.size * encoding_.id_bytes;
    }
  }
  if (touched_bytes_ < options_.memory_bytes / 4) return;
  ids_.Forget(0, ids_.size());
  touched_.clear();
  touched_bytes_ = 0;
}

Status BlockPass::WriteSplit(Split split) {
  const int number = static_cast<int>(split);
  const int64_t block_rows = writer_->info().rows_per_block;
  const int64_t rows = places_.rows(number);
  const int64_t batch = kBatchBlocksPerThread * pool_->threads();
  std::vector<EncodedBlock> blocks(batch);
  std::vector<Status> outcomes(batch);
  for (int64_t begin = writer_->rows_written(split); begin < rows; begin += batch * block_rows) {
    const int64_t count = std::min(batch, (rows - begin + block_rows - 1) / block_rows);
    pool_->ParallelFor(count, 1, [&](int, int64_t first, int64_t last) {
      UnpackedChunk chunk(plan_);
      int64_t loaded = -1;
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = begin + i * block_rows;
        const Range range = {row, std::min(row + block_rows, rows)};
        blocks[i].rows = range.size();
        outcomes[i] = Encode(number, range, &chunk, &loaded, &blocks[i].bytes);
      }
    });
    for (const Status& outcome : outcomes) ELASTOR_RETURN_IF_ERROR(outcome);
    ELASTOR_RETURN_IF_ERROR(writer_->AppendBlocks(split, blocks, count, pool_));
    const int64_t written = std::min(batch * block_rows, rows - begin);
    rows_done_ += written;
    ForgetUsedIds(places_.ChunkOfRow(number, begin + written - 1));
    Report(number, begin + written);
  }
  return OkStatus();
}

// So many rows of the split are written.
void BlockPass::Report(int split, int64_t rows) {
  if (!options_.progress) return;
  int64_t before = rows, all = 0;
  for (int other = 0; other < 3; ++other) {
    if (other < split) before += places_.rows(other);
    all += places_.rows(other);
  }
  options_.progress(
      {"writing", static_cast<double>(before) / static_cast<double>(all), rows_done_, 0});
}

// The rows that a quarter of the memory holds.
int64_t BlockPass::RowsAtOnce() const {
  int64_t bytes = 0, rows = 0;
  for (const SpilledChunk& chunk : text_.chunks) {
    bytes += chunk.bytes;
    rows += chunk.rows;
  }
  // An id of 8 bytes takes a byte at least of a chunk.
  const auto columns = static_cast<int64_t>(plan_.ids.size() + plan_.numeric.size());
  const int64_t row_bytes = 64 + 16 * columns + 8 * (bytes / std::max<int64_t>(rows, 1));
  return std::max<int64_t>(options_.memory_bytes / 4 / row_bytes, 1);
}

void BlockPass::AppendRow(const Rows& from, int64_t row, Rows* to) const {
  const auto copy = [row](const auto& values, size_t per_row, auto* out) {
    const auto begin = values.begin() + row * static_cast<int64_t>(per_row);
    out->insert(out->end(), begin, begin + static_cast<int64_t>(per_row));
  };
  const size_t columns = plan_.ids.size();
  ++to->rows;
  copy(from.labels, plan_.labels.size(), &to->labels);
  if (plan_.weights) copy(from.weights, 1, &to->weights);
  if (plan_.groups) copy(from.groups, 1, &to->groups);
  copy(from.times, 1, &to->times);
  copy(from.numeric, plan_.numeric.size(), &to->numeric);
  if (plan_.bags == 0) return copy(from.ids, columns, &to->ids);
  if (to->offsets.empty()) to->offsets.push_back(0);
  const auto first = row * static_cast<int64_t>(columns);
  for (int64_t bag = first; bag < first + static_cast<int64_t>(columns); ++bag) {
    to->ids.insert(to->ids.end(), from.ids.begin() + from.offsets[bag],
                   from.ids.begin() + from.offsets[bag + 1]);
    to->offsets.push_back(static_cast<int64_t>(to->ids.size()));
  }
}

// Takes the rows of one range of times after another, as many as fit into memory.
Status BlockPass::WriteSorted(Split split) {
  struct Place {
    int64_t time;
    int64_t chunk;
    int64_t row;  // of the chunk's rows in memory
    auto operator<=>(const Place&) const = default;
  };
  const int number = static_cast<int>(split);
  const int64_t rows = places_.rows(number), block_rows = writer_->info().rows_per_block;
  const int64_t written = writer_->rows_written(split);
  if (written == rows) return OkStatus();
  ChunkTimes times(
      plan_, rows_, text_.chunks, pool_,
      [&](int64_t chunk, const UnpackedChunk& unpacked, std::vector<uint32_t>* chosen) {
        places_.Select(unpacked, number, chunk, {0, places_.count(number, chunk)}, chosen);
      });
  ELASTOR_RETURN_IF_ERROR(times.Read());
  std::vector<int64_t> ranks;
  for (int64_t rank = 0, at_once = RowsAtOnce(); rank < rows; rank += at_once)
    ranks.push_back(rank);
  ELASTOR_ASSIGN_OR_RETURN(std::vector<ChunkTimes::RankedTime> starts, times.TimesOfRanks(ranks));
  starts.push_back({times.range().last + 1, rows});
  Rows left;  // behind the last whole block
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const int64_t first = starts[i].time, end = starts[i + 1].time;
    if (starts[i + 1].earlier <= written || first == end) continue;
    std::mutex mutex;
    std::map<int64_t, Rows> parts;  // by chunk
    std::vector<Place> order;
    ELASTOR_RETURN_IF_ERROR(times.ForEachChunk(
        [&](const ChunkTimes::Range& range) { return range.first < end && range.last >= first; },
        [&](int64_t chunk, const UnpackedChunk& unpacked, const std::vector<uint32_t>& chosen) {
          std::vector<uint32_t> here;
          std::vector<Place> places;
          for (const uint32_t row : chosen) {
            const int64_t time = unpacked.time(row);
            if (time < first || time >= end) continue;
            places.push_back({time, chunk, static_cast<int64_t>(here.size())});
            here.push_back(row);
          }
          Rows part;
          if (plan_.bags > 0) part.offsets.push_back(0);
          Gather(unpacked, text_.chunks[chunk].segment, here, &part);
          const std::lock_guard<std::mutex> lock(mutex);
          parts[chunk] = std::move(part);
          order.insert(order.end(), places.begin(), places.end());
        }));
    std::ranges::sort(order);
    // An earlier run has written these.
    order.erase(order.begin(), order.begin() + std::max<int64_t>(written - starts[i].earlier, 0));
    const auto append = [&](int64_t row, Rows* to) {
      if (row < left.rows) return AppendRow(left, row, to);
      const Place& place = order[row - left.rows];
      AppendRow(parts.at(place.chunk), place.row, to);
    };
    const int64_t there = left.rows + static_cast<int64_t>(order.size());
    const int64_t whole = starts[i + 1].earlier == rows ? there : there / block_rows * block_rows;
    ELASTOR_RETURN_IF_ERROR(WriteRowBlocks(split, {0, whole}, append, pool_, writer_));
    Rows rest;
    for (int64_t row = whole; row < there; ++row) append(row, &rest);
    left = std::move(rest);
    ids_.Forget(0, ids_.size());
    rows_done_ += whole;
    Report(number, starts[i + 1].earlier);
  }
  return OkStatus();
}

Status BlockPass::Run() {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    touched_chunk_ = 0;
    ELASTOR_RETURN_IF_ERROR(plan_.schema.sort_by_time() ? WriteSorted(split) : WriteSplit(split));
  }
  return OkStatus();
}

}  // namespace

Status WriteBlocks(const PrepareOptions& options, const PreparePlan& plan,
                   const TextPassResult& text, const SplitPlaces& places, const Encoding& encoding,
                   const WorkFile& rows, const WorkFile& ids, ThreadPool* pool,
                   DatasetWriter* writer) {
  return BlockPass(options, plan, text, places, encoding, rows, ids, pool, writer).Run();
}

}  // namespace elastor
