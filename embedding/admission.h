#ifndef ELASTOR_EMBEDDING_ADMISSION_H_
#define ELASTOR_EMBEDDING_ADMISSION_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "embedding/row_store.h"
#include "embedding/table.h"

namespace elastor {

// Admission: which keys of a keyed table get a row. A training lookup adds the occurrences of the
// whole batch to the counts of the keys that have no row. It then creates the rows of those whose
// count is min_count or more. Keys with a row are not counted.
//
// Exact counts are rows of one element, by key. A key that is admitted loses its count. A sketch
// has kSketchDepth rows of counters for each partition, and a key has one counter in each, by a
// fixed hash. Its count is the least of them. All keys of a batch are added before one is looked
// at, so no order shows. Counts stop at kMostCount (row_rules.h), which a float holds exactly.
//
// A key without a row is served by zeros, which do not train, or by the shared row of its
// partition. The gradient of a shared row is the sum of its keys' gradients, in ascending order of
// the keys.

inline constexpr int64_t kSketchDepth = 4;
inline constexpr int64_t kSketchLine = 16;  // counters

// The names of the other tables of table X: X/shared, X/counts, X/sketch.
inline constexpr char kSharedSuffix[] = "/shared";
inline constexpr char kCountsSuffix[] = "/counts";
inline constexpr char kSketchSuffix[] = "/sketch";

// Returns the tables, and behind them those that serve their admission: first shared rows, then
// counts.
std::vector<TableSpec> WithAdmission(std::vector<TableSpec> tables);

// Returns the places of a key's counters in the partitions' sketches of `lines` lines a row: place
// i is element i % kSketchLine of the row with the key i / kSketchLine in the sketches' table.
std::array<int64_t, kSketchDepth> SketchPlaces(int64_t key, int64_t lines);

// Writes what serves a key without a row when nothing is trained: the initial row of a table that
// admits all keys, zeros, or the shared row. shared: null without shared rows.
template <typename T>
void MakeUnknown(const TableSpec& table, int64_t elements, const RowStore<T>& rows,
                 const RowStore<T>* shared, int64_t key, T* row);

// The admission of one table on one rank. Calls for different parts may run together.
template <typename T>
class Admission {
 public:
  // A key of the batch that is not admitted.
  struct Waiting {
    int64_t partition;
    uint64_t key;
    int64_t at;  // its place in the batch's keys
  };
  // What trains a shared row.
  struct Shared {
    int64_t partition;
    T* row;
    std::vector<T> gradient;
  };

  // rows, counts, shared: the stores of the table, of its counts or sketches, and of its shared
  // rows (null: zeros). They outlive the object, as table does. touches: whether changed counts are
  // marked as touched.
  Admission(const TableSpec& table, RowStore<T>* rows, RowStore<T>* counts, RowStore<T>* shared,
            bool touches, int parts);

  // Counts keys and admits some, those of part `part` of `parts` among the keys without a row
  // (rows[i] is null). Then every one of them has a row, that which serves it. counts[i]:
  // occurrences in the whole batch.
  void Serve(std::span<const int64_t> keys, const uint32_t* counts, int part, int parts, T** rows);
  // Returns the keys of a part that the last call of Serve did not admit, in order of (partition,
  // key).
  const std::vector<Waiting>& waiting(int part) const { return parts_[part].waiting; }

  // Adds up the gradients of shared rows of a part. gradient(at) returns the gradient of the key at
  // that place.
  template <typename Gradient>
  std::vector<Shared>& SumShared(int part, const Gradient& gradient);
  // Returns what the last call of SumShared made.
  std::vector<Shared>& shared(int part) { return parts_[part].shared; }

  // Notes that the keys which were counted were last counted at this step.
  void UseCounts(int part, int64_t step);

 private:
  struct Part {
    std::vector<Waiting> waiting;
    std::vector<Shared> shared;
    std::vector<T*> counted;
  };

  bool CountExactly(int64_t key, uint32_t count, T* counted, Part* part);
  void AddToSketch(int64_t key, uint32_t count);
  int64_t SketchedCount(int64_t key) const;
  T* SharedRow(int64_t partition);

  const TableSpec& table_;
  RowStore<T>& rows_;
  RowStore<T>& counts_;
  RowStore<T>* const shared_;
  const bool touches_;
  std::vector<T> zeros_;  // the row of keys that nothing serves
  std::vector<Part> parts_;
};

template <typename T>
template <typename Gradient>
std::vector<typename Admission<T>::Shared>& Admission<T>::SumShared(int part,
                                                                    const Gradient& gradient) {
  std::vector<Shared>& sums = parts_[part].shared;
  sums.clear();
  for (const Waiting& waiting : parts_[part].waiting) {
    const T* const own = gradient(waiting.at);
    if (sums.empty() || sums.back().partition != waiting.partition) {
      sums.push_back({waiting.partition, SharedRow(waiting.partition), {own, own + table_.width}});
      continue;
    }
    std::vector<T>& sum = sums.back().gradient;
    for (int64_t i = 0; i < table_.width; ++i) sum[i] += own[i];
  }
  return sums;
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ADMISSION_H_
