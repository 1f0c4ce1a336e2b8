#ifndef ELASTOR_TRAINER_EVALUATE_SLICES_H_
#define ELASTOR_TRAINER_EVALUATE_SLICES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluate/metrics.h"

namespace elastor {

// Slices that an experiment asks for (EvaluationConfig).
struct SliceOptions {
  std::vector<std::string> fields = {};  // categorical; a row of a bag is in the slice of each id
  int64_t values = 20;                   // most slices per field
};

// Checks the options. User error in one line when a name is no categorical field, or stands twice.
Status ValidateSlices(const SliceOptions& options, const DatasetInfo& data);

// The slices of a split: for each field, the ids that occur in the most rows, ties by id. First
// every rank counts its rows, then all choose, then memberships are looked up.
//
// Memory: about 50 bytes while counting, and 75 while choosing, for each id of the fields that
// occurs in this rank's rows.
class Slices {
 public:
  struct Slice {
    int64_t field;  // index among the categorical fields
    int64_t id;
    int64_t rows;  // over all ranks
  };

  // REQUIRES: ValidateSlices accepts the options, and values > 0.
  Slices(const SliceOptions& options, const DatasetInfo& data);

  bool any_field() const { return !fields_.empty(); }
  void Count(const SparseBatch& batch);
  // Chooses the slices. Collective; called once, after all counting.
  Status Choose(Communicator& communicator);
  // The chosen slices, ordered by field as in the options, then by rows, descending, then by id.
  const std::vector<Slice>& slices() const { return slices_; }
  // Replaces *found by the pairs of a row of the batch and a slice (its index in slices()) that
  // holds it.
  void Find(const SparseBatch& batch, std::vector<RowSlice>* found) const;

 private:
  // Calls visit(row, id) for the distinct ids of the field's bags.
  template <typename Visit>
  static void ForEachId(const SparseBatch& batch, int64_t field, const Visit& visit);

  const int64_t values_;
  std::vector<int64_t> fields_;
  std::vector<std::unordered_map<int64_t, int64_t>> counts_;  // for every field, rows by id
  std::vector<Slice> slices_;
  std::vector<std::unordered_map<int64_t, int64_t>> slice_of_id_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_SLICES_H_
