#include "embedding/cuda/table_state.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/base/log.h"

namespace elastor::cuda {
namespace {

constexpr int64_t kBlock = 1024;             // rows of a visit
constexpr int64_t kPieceElements = 1 << 20;  // copied at a time, or one quotient's rows
constexpr int64_t kRowsToSend = 1 << 14;     // collected at most
constexpr int64_t kValuesToSend = 1 << 21;   // their elements

}  // namespace

TableState::TableState(const EmbeddingLayout* layout, const ShardPlan* plan, int rank,
                       RowTables* tables, Stream* stream, ThreadPool* pool)
    : layout_(layout),
      plan_(plan),
      rank_(rank),
      tables_(tables),
      stream_(stream),
      pool_(pool),
      device_rows_(stream),
      device_values_(stream) {
  first_row_.push_back(0);
  for (int64_t t = 0; t < tables->tables(); ++t) {
    first_row_.push_back(first_row_.back() + tables->view(t).stored_rows);
  }
}

// ---- Writing

void TableState::SetRow(int table, int64_t key, const float* weights, const float* slots) {
  CHECK(layout_->table(table).keys().Contains(key))
      << layout_->table(table).name << ": no row " << key;
  if (!Owns(table, RowIndex::PartitionOf(key))) return;
  const TableView& view = tables_->view(table);
  const int64_t length = view.width + view.slots;
  const std::lock_guard lock(mutex_);
  if (numbers_.size() == kRowsToSend || values_used_ + length > values_.size()) SendRowsLocked();
  if (rows_.size() == 0) {
    rows_.Resize(kRowsToSend);
    numbers_.Reset(kRowsToSend, keys_.Resize(kRowsToSend));
  }
  if (values_used_ + length > values_.size()) values_.Resize(std::max(kValuesToSend, length));
  const int64_t index = tables_->partitions(table).index().IndexOf(key);
  const uint32_t known = numbers_.size();
  const uint32_t number = numbers_.Number(first_row_[table] + index);
  RowToSet& row = rows_[number];
  if (number == known) {
    row = {table, slots == nullptr, index, values_used_};
    values_used_ += length;
  } else if (slots != nullptr) {
    row.only_weights = false;
  }
  std::copy_n(weights, view.width, values_.data() + row.at);
  if (slots != nullptr) std::copy_n(slots, view.slots, values_.data() + row.at + view.width);
}

void TableState::SendRows() {
  const std::lock_guard lock(mutex_);
  SendRowsLocked();
  cache_dropped_ = false;
}

void TableState::SendRowsLocked() {
  const int64_t count = numbers_.size();
  if (count == 0) return;
  if (!cache_dropped_) tables_->WriteBackCache(RowCache::After::kDrop);
  cache_dropped_ = true;
  Copy(*stream_, device_rows_.Resize(count), rows_.data(), count);
  Copy(*stream_, device_values_.Resize(values_used_), values_.data(), values_used_);
  tables_->Set(device_rows_.data(), count, device_values_.data());
  stream_->Synchronize();  // the memory is filled again
  numbers_.Reset(kRowsToSend, keys_.data());
  values_used_ = 0;
  current_ = false;
}

void TableState::ForgetRows() {
  const std::lock_guard lock(mutex_);
  SendRowsLocked();
  tables_->WriteBackCache(RowCache::After::kDrop);
  tables_->Forget();
  current_ = false;
}

// ---- Reading

void TableState::BringUpToDate() {
  const std::lock_guard lock(mutex_);
  SendRowsLocked();
  if (current_) return;
  tables_->WriteBackCache(RowCache::After::kKeep);
  tables_->CopyPresent(present_.Resize(tables_->first_word(tables_->tables())));
  brought_.Record(*stream_);
  brought_.Synchronize();
  current_ = true;
}

std::unique_ptr<TableState::Carrier> TableState::TakeCarrier() {
  const std::lock_guard lock(mutex_);
  if (carriers_.empty()) return std::make_unique<Carrier>();
  std::unique_ptr<Carrier> carrier = std::move(carriers_.back());
  carriers_.pop_back();
  return carrier;
}

void TableState::PutBack(std::unique_ptr<Carrier> carrier) {
  const std::lock_guard lock(mutex_);
  carriers_.push_back(std::move(carrier));
}

void TableState::VisitPiece(int64_t t, const Range& quotients, const Range& numbers,
                            const float* rows, int64_t quotient_stride, const Visit& visit) const {
  const TableView& view = tables_->view(t);
  const RowIndex index = tables_->partitions(t).index();
  std::array<int64_t, kBlock> keys;
  std::array<const float*, kBlock> found;
  int64_t filled = 0;
  const auto flush = [&] {
    if (filled > 0) visit(std::span(keys.data(), filled), found.data());
    filled = 0;
  };
  for (int64_t q = quotients.begin; q < quotients.end; ++q) {
    const float* const first = rows + (q - quotients.begin) * quotient_stride;
    const int64_t end = std::min(numbers.end, view.stored_rows - q * index.count);
    for (int64_t n = numbers.begin; n < end; ++n) {
      if (!Present(t, q * index.count + n)) continue;
      const int64_t key = index.KeyOf(q, n);
      if (!HasPrimary(static_cast<int>(t), key)) continue;
      keys[filled] = key;
      found[filled] = first + (n - numbers.begin) * view.stride;
      if (++filled == kBlock) flush();
    }
  }
  flush();
}

void TableState::VisitRows(int64_t t, const Range& quotients, const Range& numbers,
                           const Visit& visit) {
  const TableView& view = tables_->view(t);
  const int64_t from_stride = view.index.count * view.stride;
  const float* const rows = view.rows + numbers.begin * view.stride;
  if (numbers.size() == 0 || quotients.size() == 0) return;
  if (view.in_host) {
    VisitPiece(t, quotients, numbers, rows + quotients.begin * from_stride, from_stride, visit);
    return;
  }
  std::unique_ptr<Carrier> carrier = TakeCarrier();
  // The host has waited for it. CUDA's memory pool, and its tools, know the order of streams alone.
  carrier->stream.Wait(brought_);
  const int64_t columns = numbers.size() * view.stride;
  const int64_t step = std::max<int64_t>(1, kPieceElements / columns);
  // The last rows of a table do not fill their quotient.
  const int64_t whole_end =
      view.stored_rows < numbers.end ? 0 : (view.stored_rows - numbers.end) / view.index.count + 1;
  for (int64_t q = quotients.begin; q < quotients.end; q += step) {
    const Range piece = {q, std::min(q + step, quotients.end)};
    float* const memory = carrier->memory.Resize(piece.size() * columns);
    const int64_t whole = std::clamp<int64_t>(whole_end - q, 0, piece.size());
    Copy2D<float>(carrier->stream, memory, columns, rows + q * from_stride, from_stride, columns,
                  whole);
    if (whole < piece.size()) {
      const int64_t last = q + whole;
      const int64_t left = view.stored_rows - last * view.index.count - numbers.begin;
      Copy<float>(carrier->stream, memory + whole * columns, rows + last * from_stride,
                  std::max<int64_t>(left, 0) * view.stride);
    }
    carrier->stream.Synchronize();
    VisitPiece(t, piece, numbers, memory, columns, visit);
  }
  PutBack(std::move(carrier));
}

void TableState::AddToDigest(Digest* digest) {
  BringUpToDate();
  std::vector<Digest> parts(pool_->threads());
  pool_->Run([&](int thread) {
    for (int64_t t = 0; t < tables_->tables(); ++t) {
      const TableView& view = tables_->view(t);
      const uint64_t name = Digest::NameSeed("embedding/" + layout_->table(t).name);
      const size_t bytes = (view.width + view.slots) * sizeof(float);
      const int64_t all = (layout_->table(t).rows + kPartitions - 1) / kPartitions;
      VisitRows(t, PartOf(thread, pool_->threads(), all), {0, view.index.count},
                [&](std::span<const int64_t> keys, const float* const* rows) {
                  for (size_t i = 0; i < keys.size(); ++i) {
                    parts[thread].AddHashed(name, static_cast<uint64_t>(keys[i]), rows[i], bytes);
                  }
                });
    }
  });
  for (const Digest& part : parts) digest->Merge(part);
}

void TableState::ForEachRow(
    const std::function<void(int, int64_t, const float*, const float*)>& fn) {
  BringUpToDate();
  for (int64_t t = 0; t < tables_->tables(); ++t) {
    const TableView& view = tables_->view(t);
    VisitRows(t, {0, (layout_->table(t).rows + kPartitions - 1) / kPartitions},
              {0, view.index.count}, [&](std::span<const int64_t> keys, const float* const* rows) {
                for (size_t i = 0; i < keys.size(); ++i) {
                  fn(static_cast<int>(t), keys[i], rows[i], rows[i] + view.width);
                }
              });
  }
}

std::vector<int64_t> TableState::CountRows(int table) {
  BringUpToDate();
  std::vector<int64_t> counts(kPartitions, 0);
  const RowIndex row_index = tables_->partitions(table).index();
  for (int64_t index = 0; index < tables_->view(table).stored_rows; ++index) {
    if (!Present(table, index)) continue;
    const int64_t partition = row_index.PartitionAt(index % row_index.count);
    if (HasPrimary(table, partition)) ++counts[partition];
  }
  return counts;
}

void TableState::ForEachRowOf(
    int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const float* const*)>& fn) {
  BringUpToDate();
  VisitRows(table, {0, (layout_->table(table).rows + kPartitions - 1) / kPartitions},
            tables_->partitions(table).NumbersIn(partitions), fn);
}

}  // namespace elastor::cuda
