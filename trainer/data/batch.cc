#include "trainer/data/batch.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/text.h"

namespace elastor {

Status LayOutSequences(std::span<const SequenceShape> sequences, LocalBatch* batch) {
  batch->lengths.clear();
  if (sequences.empty()) return OkStatus();
  SparseBatch& sparse = batch->sparse;
  CHECK(sparse.rows == 0 || !sparse.offsets.empty()) << "a data set without bags";
  const int64_t fields = sparse.fields;
  std::vector<const SequenceShape*> sequence_of(fields, nullptr);  // by field; null: none
  for (const SequenceShape& sequence : sequences) {
    sequence_of[sequence.field] = &sequence;
    if (!sequence.pooled) sparse.fields += sequence.positions;
  }
  std::vector<int64_t> ids, offsets;
  ids.reserve(sparse.ids.size());
  offsets.reserve(sparse.rows * sparse.fields + 1);
  offsets.push_back(0);
  const auto end_bag = [&] { offsets.push_back(static_cast<int64_t>(ids.size())); };
  for (int64_t row = 0; row < sparse.rows; ++row) {
    const int64_t* const ends = sparse.offsets.data() + row * fields;
    // The latest `most` ids of a field.
    const auto latest = [&](int64_t field, int64_t most) {
      const int64_t length = std::min(most, ends[field + 1] - ends[field]);
      return std::span<const int64_t>(sparse.ids.data() + ends[field + 1] - length, length);
    };
    for (int64_t field = 0; field < fields; ++field) {
      const SequenceShape* const sequence = sequence_of[field];
      const int64_t all = ends[field + 1] - ends[field];
      if (sequence == nullptr || sequence->pooled) {
        const auto bag = latest(field, sequence == nullptr ? all : sequence->positions);
        ids.insert(ids.end(), bag.begin(), bag.end());
      }
      end_bag();
    }
    for (const SequenceShape& sequence : sequences) {
      if (sequence.pooled) continue;
      const auto kept = latest(sequence.field, sequence.positions);
      const auto length = static_cast<int32_t>(kept.size());
      if (sequence.parallel && &sequence != &sequences[0] && length != batch->lengths.back()) {
        return UserError(StrCat("a row has ", CountText(batch->lengths.back(), "id"), " of '",
                                (&sequence - 1)->name, "' and ", length, " of '", sequence.name,
                                "'; expected as many, as the model reads them side by side"));
      }
      batch->lengths.push_back(length);
      for (int64_t t = 0; t < sequence.positions; ++t) {
        if (t < static_cast<int64_t>(kept.size())) ids.push_back(kept[t]);
        end_bag();
      }
    }
  }
  sparse.ids.swap(ids);
  sparse.offsets.swap(offsets);
  return OkStatus();
}

}  // namespace elastor
