#include "embedding/cuda/row_tables.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/sizes.h"

namespace elastor::cuda {
namespace {

// Elements from one row to the next: whole sectors of the device's memory, or a power of two within
// one, so that a row never touches more of them than it must.
int64_t StrideOf(int64_t elements) {
  constexpr int64_t kSector = 32 / sizeof(float);
  if (elements <= kSector)
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(elements)));
  return (elements + kSector - 1) / kSector * kSector;
}

int64_t BytesOf(int64_t rows, int64_t stride) {
  return SizeProduct({rows, stride, static_cast<int64_t>(sizeof(float))});
}

int64_t WordsOf(int64_t rows) { return (rows + 31) / 32; }

}  // namespace

RowTables::RowTables(const EmbeddingLayout* layout, const ShardPlan* plan, const Options& options,
                     Stream* stream)
    : layout_(layout),
      plan_(plan),
      options_(options),
      stream_(stream),
      device_views_(stream),
      device_first_word_(stream),
      present_(stream),
      marks_(stream),
      list_(stream),
      list_count_(stream) {
  first_word_.push_back(0);
  const std::vector<bool> in_host = PlaceInHost();
  int64_t cached_stride = 0;
  int64_t device_bytes = 0;
  for (int64_t t = 0; t < layout->tables(); ++t) {
    AddTable(t, in_host[t]);
    const TableView& view = views_.back();
    if (in_host[t]) cached_stride = std::max<int64_t>(cached_stride, view.stride);
    if (!in_host[t]) device_bytes += BytesOf(view.stored_rows, view.stride);
  }
  // A dense optimizer passes over all rows where they lie.
  cache_ = std::make_unique<RowCache>(stream, dense() ? 0 : options.device_bytes - device_bytes,
                                      cached_stride);
  present_.Resize(first_word_.back());
  FillZero(*stream_, present_.data(), present_.size());
  for (int64_t t = 0; t < tables(); ++t) views_[t].present = present_.data() + first_word_[t];
  Copy(*stream_, device_views_.Resize(tables()), views_.data(), tables());
  Copy(*stream_, device_first_word_.Resize(tables() + 1), first_word_.data(), tables() + 1);
  list_count_.Resize(1);
  if (dense()) CreateAll();
}

std::vector<bool> RowTables::PlaceInHost() const {
  const int64_t tables = layout_->tables();
  std::vector<int64_t> bytes(tables);
  int64_t all = 0;
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t width = layout_->width(t);
    bytes[t] = BytesOf(plan_->RowsOnRank(static_cast<int>(t), options_.rank),
                       StrideOf(width + SlotElements(options_.optimizer.kind, width)));
    AddSize(bytes[t], &all);
  }
  const int64_t limit = options_.device_bytes;
  if (limit == 0 || all <= limit) return std::vector<bool>(tables, false);
  // Small tables first, in half of the memory; the rest of it is cache.
  std::vector<int64_t> order(tables);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return bytes[a] < bytes[b]; });
  std::vector<bool> in_host(tables, false);
  int64_t used = 0;
  for (int64_t t : order) {
    AddSize(bytes[t], &used);
    in_host[t] = used > limit / 2;
  }
  return in_host;
}

void RowTables::AddTable(int64_t t, bool in_host) {
  const TableSpec& spec = layout_->table(t);
  const StoredPartitions& partitions =
      partitions_.emplace_back(plan_->PartitionsOnRank(static_cast<int>(t), options_.rank));
  Buffer<int32_t>& numbers = device_numbers_.emplace_back(stream_);
  Buffer<int32_t>& by_number = device_partitions_.emplace_back(stream_);
  TableView view;
  view.index = partitions.index();
  if (!partitions.numbers().empty()) {
    Upload(*stream_, partitions.numbers(), &numbers);
    Upload(*stream_, partitions.partitions(), &by_number);
    view.index.numbers = numbers.data();
    view.index.partitions = by_number.data();
  }
  view.stored_rows = plan_->RowsOnRank(static_cast<int>(t), options_.rank);
  view.random_key = MakeRandomKey(options_.seed, RandomPurpose::kRowInit, HashName(spec.name));
  view.stddev = spec.init_stddev;
  view.initial_slot = static_cast<float>(InitialSlot(options_.optimizer));
  view.width = static_cast<int32_t>(spec.width);
  view.slots = static_cast<int32_t>(SlotElements(options_.optimizer.kind, spec.width));
  view.stride = static_cast<int32_t>(StrideOf(view.width + view.slots));
  view.in_host = in_host;
  view.replicated = plan_->replicated(static_cast<int>(t));
  const int64_t elements =
      BytesOf(view.stored_rows, view.stride) / static_cast<int64_t>(sizeof(float));
  device_rows_.emplace_back(stream_);
  host_rows_.push_back(std::make_unique<PinnedBuffer<float>>());
  view.rows = in_host ? host_rows_.back()->Resize(elements) : device_rows_.back().Resize(elements);
  views_.push_back(view);
  first_word_.push_back(first_word_.back() + WordsOf(view.stored_rows));
}

void RowTables::CreateAll() {
  for (int64_t t = 0; t < tables(); ++t) {
    CreateAllRows(*stream_, views_[t]);
  }
}

int64_t RowTables::memory_bytes() const {
  int64_t bytes = 0;
  for (const TableView& view : views_) bytes += BytesOf(view.stored_rows, view.stride);
  return bytes;
}

void RowTables::FindOrCreate(const OwnedKeys& owned, float** rows) {
  const KeyList created = {list_.Resize(owned.bound), list_count_.data()};
  FillZero(*stream_, created.count, 1);
  ClaimRows(*stream_, device_views(), owned, rows, created);
  cache_->Fetch(device_views(), owned, rows);
  InitialiseRows(*stream_, device_views(), owned, created, rows);
}

void RowTables::Find(const OwnedKeys& owned, float** rows, int32_t* missing) {
  const KeyList list = {list_.Resize(owned.bound), list_count_.data()};
  FillZero(*stream_, list.count, 1);
  FindRows(*stream_, device_views(), owned, rows, list);
  cache_->Fetch(device_views(), owned, rows);
  Copy(*stream_, missing, list.count, 1);
}

void RowTables::MakeForgotten(const OwnedKeys& owned, int64_t missing, Buffer<float>* forgotten,
                              float** rows) {
  const int64_t stride = StrideOf(std::max<int64_t>(layout_->widest(), 1));
  float* const memory = forgotten->Resize(missing * stride);
  MakeForgottenRows(*stream_, device_views(), owned, {list_.data(), list_count_.data()}, missing,
                    memory, stride, rows);
}

void RowTables::MarkTouched(const OwnedKeys& owned) {
  marks_.Resize(first_word_.back());
  FillZero(*stream_, marks_.data(), marks_.size());
  MarkRows(*stream_, device_views(), owned, device_first_word_.data(), marks_.data());
}

void RowTables::CopyPresent(uint32_t* words) {
  Copy(*stream_, words, present_.data(), present_.size());
}

void RowTables::Set(const RowToSet* rows, int64_t count, const float* values) {
  SetRows(*stream_, device_views(), rows, count, values);
}

void RowTables::Forget() {
  FillZero(*stream_, present_.data(), present_.size());
  if (dense()) CreateAll();
}

}  // namespace elastor::cuda
