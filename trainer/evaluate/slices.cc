#include "trainer/evaluate/slices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "collective/exchange_records.h"
#include "core/base/log.h"

namespace elastor {
namespace {

int64_t PlaceOf(const std::string& name, const DatasetInfo& data) {
  for (size_t i = 0; i < data.categorical.size(); ++i) {
    if (data.categorical[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

// Field (its place in the options), id and rows, as they travel.
struct IdCount {
  int64_t field;
  int64_t id;
  int64_t rows;
};

// By field, then by rows, descending, then by id; keys are unsigned.
bool Before(const IdCount& a, const IdCount& b) {
  return std::tuple(a.field, -a.rows, static_cast<uint64_t>(a.id)) <
         std::tuple(b.field, -b.rows, static_cast<uint64_t>(b.id));
}

// Sorts, and keeps the first `values` of every field.
void KeepFirst(int64_t values, std::vector<IdCount>* counts) {
  std::sort(counts->begin(), counts->end(), Before);
  int64_t of_field = 0;
  size_t kept = 0;
  for (size_t i = 0; i < counts->size(); ++i) {
    const bool same = i > 0 && (*counts)[i].field == (*counts)[i - 1].field;
    of_field = same ? of_field + 1 : 1;
    if (of_field <= values) (*counts)[kept++] = (*counts)[i];
  }
  counts->resize(kept);
}

// Everybody's counts of an id to rank id mod ranks, which adds them up.
Status SumByOwner(Communicator& communicator, std::vector<IdCount>* counts) {
  const int ranks = communicator.size();
  const auto owner = [ranks](const IdCount& count) {
    return static_cast<int64_t>(static_cast<uint64_t>(count.id) % static_cast<uint64_t>(ranks));
  };
  std::sort(counts->begin(), counts->end(),
            [&](const IdCount& a, const IdCount& b) { return owner(a) < owner(b); });
  std::vector<int64_t> for_rank(ranks);
  for (const IdCount& count : *counts) ++for_rank[owner(count)];
  ELASTOR_RETURN_IF_ERROR(
      ExchangeRecords(Phase::kMetrics, std::move(for_rank), communicator, counts));

  std::sort(counts->begin(), counts->end(), [](const IdCount& a, const IdCount& b) {
    return std::tuple(a.field, a.id) < std::tuple(b.field, b.id);
  });
  size_t sums = 0;
  for (const IdCount& count : *counts) {
    IdCount* const last = sums > 0 ? &(*counts)[sums - 1] : nullptr;
    if (last != nullptr && last->field == count.field && last->id == count.id) {
      last->rows += count.rows;
    } else {
      (*counts)[sums++] = count;
    }
  }
  counts->resize(sums);
  return OkStatus();
}

StatusOr<std::vector<IdCount>> GatherCounts(const std::vector<IdCount>& own,
                                            Communicator& communicator) {
  const int ranks = communicator.size();
  std::vector<int64_t> bytes(ranks);
  const auto mine = static_cast<int64_t>(own.size() * sizeof(IdCount));
  const std::vector<int64_t> word(ranks, sizeof(int64_t));
  ELASTOR_RETURN_IF_ERROR(communicator.AllGatherV(Phase::kMetrics, &mine, bytes.data(), word));
  int64_t total = 0;
  for (const int64_t part : bytes) total += part;
  std::vector<IdCount> all(total / sizeof(IdCount));
  ELASTOR_RETURN_IF_ERROR(communicator.AllGatherV(Phase::kMetrics, own.data(), all.data(), bytes));
  return all;
}

}  // namespace

Status ValidateSlices(const SliceOptions& options, const DatasetInfo& data) {
  for (size_t i = 0; i < options.fields.size(); ++i) {
    const std::string& name = options.fields[i];
    if (std::count(options.fields.begin(), options.fields.end(), name) > 1) {
      return UserError("evaluation.slice_by: '" + name + "' stands twice");
    }
    if (PlaceOf(name, data) >= 0) continue;
    std::string names;
    for (const auto& field : data.categorical) names += (names.empty() ? "" : ", ") + field.name;
    return UserError("evaluation.slice_by: '" + name +
                     "' is no categorical field of the data; it has: " + names);
  }
  return OkStatus();
}

Slices::Slices(const SliceOptions& options, const DatasetInfo& data) : values_(options.values) {
  for (const std::string& name : options.fields) {
    fields_.push_back(PlaceOf(name, data));
    CHECK_GE(fields_.back(), 0) << name;
  }
  CHECK(fields_.empty() || values_ > 0) << values_;
  counts_.resize(fields_.size());
  slice_of_id_.resize(fields_.size());
}

template <typename Visit>
void Slices::ForEachId(const SparseBatch& batch, int64_t field, const Visit& visit) {
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t bag = row * batch.fields + field;
    const int64_t begin = batch.offsets.empty() ? bag : batch.offsets[bag];
    const int64_t end = batch.offsets.empty() ? bag + 1 : batch.offsets[bag + 1];
    for (int64_t i = begin; i < end; ++i) {
      const auto first = batch.ids.begin() + begin;
      const auto here = batch.ids.begin() + i;
      if (std::find(first, here, *here) == here) visit(row, *here);
    }
  }
}

void Slices::Count(const SparseBatch& batch) {
  for (size_t f = 0; f < fields_.size(); ++f) {
    ForEachId(batch, fields_[f], [&](int64_t, int64_t id) { ++counts_[f][id]; });
  }
}

Status Slices::Choose(Communicator& communicator) {
  size_t ids = 0;
  for (const auto& rows_by_id : counts_) ids += rows_by_id.size();
  std::vector<IdCount> counts;
  counts.reserve(ids);
  for (size_t f = 0; f < fields_.size(); ++f) {
    for (const auto& [id, rows] : counts_[f]) counts.push_back({static_cast<int64_t>(f), id, rows});
    counts_[f] = {};
  }
  ELASTOR_RETURN_IF_ERROR(SumByOwner(communicator, &counts));
  KeepFirst(values_, &counts);
  ELASTOR_ASSIGN_OR_RETURN(counts, GatherCounts(counts, communicator));
  KeepFirst(values_, &counts);
  for (const IdCount& count : counts) {
    slice_of_id_[count.field][count.id] = static_cast<int64_t>(slices_.size());
    slices_.push_back({fields_[count.field], count.id, count.rows});
  }
  return OkStatus();
}

void Slices::Find(const SparseBatch& batch, std::vector<RowSlice>* found) const {
  found->clear();
  for (size_t f = 0; f < fields_.size(); ++f) {
    ForEachId(batch, fields_[f], [&](int64_t row, int64_t id) {
      const auto slice = slice_of_id_[f].find(id);
      if (slice != slice_of_id_[f].end()) found->push_back({row, slice->second});
    });
  }
}

}  // namespace elastor
