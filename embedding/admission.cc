#include "embedding/admission.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "embedding/key_space.h"
#include "embedding/row_rules.h"

namespace elastor {
namespace {

template <typename T>
T Added(T count, uint32_t more) {
  return static_cast<T>(std::min(static_cast<int64_t>(count) + more, kMostCount));
}

}  // namespace

std::vector<TableSpec> WithAdmission(std::vector<TableSpec> tables) {
  const int count = static_cast<int>(tables.size());
  for (int t = 0; t < count; ++t) {
    if (!tables[t].rules.admits() || !tables[t].rules.shares_rows) continue;
    tables.push_back({.name = tables[t].name + kSharedSuffix,
                      .rows = kPartitions,
                      .width = tables[t].width,
                      .init_stddev = tables[t].init_stddev,
                      .role = TableRole::kShared,
                      .beside = t});
  }
  for (int t = 0; t < count; ++t) {
    const RowRules& rules = tables[t].rules;
    if (!rules.admits()) continue;
    const bool sketched = rules.sketch_lines > 0;
    TableSpec table = {.name = tables[t].name + (sketched ? kSketchSuffix : kCountsSuffix),
                       .beside = t};
    if (sketched) {
      table.rows = kPartitions * kSketchDepth * rules.sketch_lines;
      table.width = kSketchLine;
      table.role = TableRole::kSketch;
    } else {
      table.width = 1;
      table.keyed = true;
      table.role = TableRole::kCounts;
      if (rules.count_ttl_steps > 0) {
        table.keeps_use = true;
        table.rules = {.policy = RowRules::Policy::kTtlSteps,
                       .evict_every_steps = std::max<int64_t>(rules.count_ttl_steps / 4, 1),
                       .ttl_steps = rules.count_ttl_steps};
      }
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::array<int64_t, kSketchDepth> SketchPlaces(int64_t key, int64_t lines) {
  std::array<int64_t, kSketchDepth> places;
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  const uint64_t mixed = MixKey(key);
  const auto partition = static_cast<int64_t>(mixed % kPartitions);
  const auto counters = static_cast<unsigned __int128>(lines * kSketchLine);
  for (int64_t d = 0; d < kSketchDepth; ++d) {
    const uint64_t hash = MixKey(static_cast<int64_t>(mixed + (d + 1) * kGolden));
    const auto counter = static_cast<int64_t>(hash * counters >> 64);
    const int64_t row = partition + kPartitions * (d * lines + counter / kSketchLine);
    places[d] = row * kSketchLine + counter % kSketchLine;
  }
  return places;
}

template <typename T>
void MakeUnknown(const TableSpec& table, int64_t elements, const RowStore<T>& rows,
                 const RowStore<T>* shared, int64_t key, T* row) {
  if (!table.rules.admits()) return rows.MakeInitial(key, row);
  if (shared == nullptr) {
    std::fill_n(row, elements, T{0});
    return;
  }
  const int64_t partition = table.keys().PartitionOf(key);
  T* found;
  shared->Find({&partition, 1}, &found);
  if (found == nullptr) return shared->MakeInitial(partition, row);
  std::copy_n(found, elements, row);
}

template <typename T>
Admission<T>::Admission(const TableSpec& table, RowStore<T>* rows, RowStore<T>* counts,
                        RowStore<T>* shared, bool touches, int parts)
    : table_(table),
      rows_(*rows),
      counts_(*counts),
      shared_(shared),
      touches_(touches),
      zeros_(table.width, T{0}),
      parts_(parts) {}

template <typename T>
bool Admission<T>::CountExactly(int64_t key, uint32_t count, T* counted, Part* part) {
  const T before = counted == nullptr ? T{0} : *counted;
  const T sum = Added(before, count);
  if (static_cast<int64_t>(sum) >= table_.rules.min_count) {
    if (counted != nullptr) counts_.Remove(key);
    return true;
  }
  bool created;
  if (counted == nullptr) counted = counts_.Claim(key, &created);
  *counted = sum;
  if (touches_) counts_.TouchRows({&counted, 1});
  part->counted.push_back(counted);
  return false;
}

template <typename T>
void Admission<T>::AddToSketch(int64_t key, uint32_t count) {
  for (const int64_t place : SketchPlaces(key, table_.rules.sketch_lines)) {
    const int64_t line = place / kSketchLine;
    bool created;
    T* const counters = counts_.Claim(line, &created);
    if (created) std::fill_n(counters, kSketchLine, T{0});
    T& counter = counters[place % kSketchLine];
    counter = Added(counter, count);
    if (touches_) counts_.Touch({&line, 1});
  }
}

template <typename T>
int64_t Admission<T>::SketchedCount(int64_t key) const {
  int64_t least = kMostCount;
  for (const int64_t place : SketchPlaces(key, table_.rules.sketch_lines)) {
    const int64_t line = place / kSketchLine;
    T* counters;
    counts_.Find({&line, 1}, &counters);
    least = std::min(least, static_cast<int64_t>(counters[place % kSketchLine]));
  }
  return least;
}

template <typename T>
T* Admission<T>::SharedRow(int64_t partition) {
  T* row;
  shared_->FindOrCreate({&partition, 1}, &row);
  return row;
}

template <typename T>
void Admission<T>::Serve(std::span<const int64_t> keys, const uint32_t* counts, int part, int parts,
                         T** rows) {
  Part& own = parts_[part];
  own = {};
  const bool sketched = table_.rules.sketch_lines > 0;
  std::vector<int64_t> places, missing;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] != nullptr || !rows_.IsInPart(keys[i], part, parts)) continue;
    places.push_back(static_cast<int64_t>(i));
    missing.push_back(keys[i]);
    if (sketched) AddToSketch(keys[i], counts[i]);
  }
  std::vector<T*> counted(missing.size(), nullptr);
  if (!sketched) counts_.Find(missing, counted.data());
  for (size_t m = 0; m < missing.size(); ++m) {
    const int64_t key = missing[m];
    const uint32_t count = counts[places[m]];
    const bool admitted = sketched ? SketchedCount(key) >= table_.rules.min_count
                                   : CountExactly(key, count, counted[m], &own);
    T*& row = rows[places[m]];
    if (admitted) {
      row = rows_.Create(key);
      continue;
    }
    const int64_t partition = table_.keys().PartitionOf(key);
    own.waiting.push_back({partition, static_cast<uint64_t>(key), places[m]});
    row = shared_ != nullptr ? SharedRow(partition) : zeros_.data();
  }
  std::ranges::sort(own.waiting, {}, [](const Waiting& w) { return std::tie(w.partition, w.key); });
}

template <typename T>
void Admission<T>::UseCounts(int part, int64_t step) {
  static constexpr RowRules kByStep = {.policy = RowRules::Policy::kTtlSteps};
  if (table_.rules.count_ttl_steps == 0) return;
  counts_.UseRows(kByStep, parts_[part].counted, /*counts=*/nullptr, step);
}

template void MakeUnknown(const TableSpec&, int64_t, const RowStore<float>&, const RowStore<float>*,
                          int64_t, float*);
template void MakeUnknown(const TableSpec&, int64_t, const RowStore<double>&,
                          const RowStore<double>*, int64_t, double*);
template class Admission<float>;
template class Admission<double>;

}  // namespace elastor
