#ifndef ELASTOR_EMBEDDING_WAITING_ROWS_H_
#define ELASTOR_EMBEDDING_WAITING_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/row_sums.h"
#include "core/optimizer/adam.h"
#include "embedding/row_store.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/zero_pages.h"

namespace elastor {

// Dense-equivalent Adam updates every row at every step. Without L2 the step of a row that no batch
// names reads that row alone. So the row may wait: it *owes* its steps, and takes them in registers
// (RowSumKernels::take_steps) when somebody reads it. The operations and their order are those of
// the eager pass, so the bits are too. A row that has no m and no v never changes, and owes
// nothing.
//
// A row's number tells how many of the steps it has taken. Rows that nobody reads take theirs at
// every kMostOwed-th step, a part of each table at every step, so that no row owes more.
//
// Thread-safety: calls for different rows may run together, but not beside AddTable, AddStep and
// Forget. CatchUp is const as the rows' values at a step are what they were.
template <typename T>
class WaitingRows {
 public:
  static constexpr int64_t kMostOwed = 256;
  static constexpr int64_t kNumberBytes = sizeof(uint32_t);  // of a row

  // Returns whether rows may wait. Those with L2 are part of every step's norm, and an epsilon that
  // is flushed to 0 makes rows without m and v NaN.
  static bool MayWait(const SparseOptimizerOptions& options);

  // REQUIRES: MayWait.
  explicit WaitingRows(const OptimizerOptions& options);
  // Adds the next table. store outlives the object. All its rows are new.
  void AddTable(const RowStore<T>* store, int64_t width);
  // Takes all rows of a table for new ones.
  void Forget(int64_t table);

  // Every row that is not new owes this step too.
  void AddStep(const Adam<T>& rule);
  // Returns how many steps were added.
  int64_t steps() const { return steps_; }

  // The rows of a table take the steps that they owe.
  void CatchUp(int64_t table, std::span<T* const> rows) const;
  // Notes that the rows have taken the last step with their gradients. REQUIRES: they owe it alone,
  // or are new.
  void TookStep(int64_t table, std::span<T* const> rows);
  // Notes that a row has got other values, which are those after the last step.
  void WasSet(int64_t table, T* row);

  int64_t memory_bytes() const;

 private:
  struct Table {
    const RowStore<T>* store;
    int64_t width;
    // By index of a row: 1 + the steps that it has taken; 0: it is new.
    ZeroPages numbers;
    uint32_t* NumberOf(const T* row) const {
      return static_cast<uint32_t*>(numbers.data()) + store->IndexOfRow(row);
    }
  };

  static constexpr size_t kAtOnce = 64;  // rows

  void MakeNumbers(Table* table) const;
  // Calls work(some, numbers) for up to kAtOnce rows at a time: numbers[i] is that of some[i].
  template <typename Work>
  void ForNumbers(const Table& table, std::span<T* const> rows, const Work& work) const;

  const OptimizerOptions options_;
  std::vector<Table> tables_;
  int64_t steps_ = 0;
  std::vector<typename AdamSteps<T>::Step> last_;  // at least kMostOwed, if there were so many
  AdamSteps<T> kept_;                              // points to last_
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_WAITING_ROWS_H_
