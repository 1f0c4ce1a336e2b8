#ifndef ELASTOR_EMBEDDING_EMBEDDING_STATE_H_
#define ELASTOR_EMBEDDING_EMBEDDING_STATE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/table.h"

namespace elastor {

// A set of rows that tables mark.
template <typename T>
class MarkedRows {
 public:
  virtual ~MarkedRows() = default;

  // Takes every row out of the set. Excludes all other calls.
  virtual void Forget() = 0;
  // Do what CountRows and ForEachRowOf of EmbeddingState do, for the rows of the set alone.
  virtual std::vector<int64_t> CountMarkedRows(int table) const = 0;
  virtual void ForEachMarkedRowOf(
      int table, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, const T* const* rows)>& fn) const = 0;
  // Do the same for the keys of a keyed table whose rows were removed while they belonged to the
  // state that marks count from.
  virtual std::vector<int64_t> CountGoneKeys(int /*table*/) const {
    return std::vector<int64_t>(kPartitions, 0);
  }
  virtual void ForEachGoneKeyOf(int /*table*/, const Range& /*partitions*/,
                                const std::function<void(int64_t key)>& /*fn*/) const {}
};

// The rows that were created, set or updated by an optimizer's step since the last of Forget,
// construction and EmbeddingState::ForgetRows. The calls work as EmbeddingState's of similar names,
// for these rows alone.
template <typename T>
class TouchedRows : public MarkedRows<T> {
 public:
  // After Forget callers keep the digest records of all rows as they are then, so that a step that
  // changes a row need not hash its old contents.
  //
  // Keeps the record of a row that this rank has the primary replica of. Steps, lookups and SetRow
  // may go on meanwhile; excludes the other calls that keep records or read them. Does nothing for
  // a keyed table, whose rows may go meanwhile: Forget has kept their records.
  virtual void KeepRecord(int table, int64_t key, const Digest& record) = 0;
  // Keeps the record of every row and adds it to *digest. REQUIRES: no row has changed.
  virtual void KeepRecords(Digest* digest) = 0;
  // Returns the sum of the records kept for these rows and for gone keys; a row created since then
  // has none. Take the
  // digest of all rows at Forget, subtract KeptRecords(kTouched) and call AddTouchedToDigest: the
  // result is the digest of all rows now, and no other row is read.
  virtual Digest KeptRecords(RowSet set) const = 0;
  virtual void AddTouchedToDigest(Digest* digest) const = 0;
};

// The rows of sharded embedding tables as checkpoints and digests see them, on any device. Rows are
// handed out in host memory: weights, then slots.
template <typename T>
class EmbeddingState {
 public:
  virtual ~EmbeddingState() = default;

  // Adds every initialised row (name "embedding/<table>", key, weights then slots) once over all
  // ranks.
  virtual void AddToDigest(Digest* digest) const = 0;

  // Visits the initialised rows whose primary replica (shard_plan.h) this rank has, tables in order
  // and keys ascending: fn(table, key, weights, slots). For tests.
  virtual void ForEachRow(const std::function<void(int table, int64_t key, const T* weights,
                                                   const T* slots)>& fn) const = 0;
  // Sets one row if this rank owns (a copy of) it, marking it initialised. Without slots (null) it
  // keeps those it has: the initial ones, if it is new. Thread-safe for different rows.
  virtual void SetRow(int table, int64_t key, const T* weights, const T* slots) = 0;
  // Removes a row of a keyed table if this rank owns it and it exists. Thread-safe with SetRow for
  // different rows. Devices hold no keyed tables.
  virtual void RemoveRow(int /*table*/, int64_t /*key*/) {}
  // Makes every row uninitialised, as after construction.
  virtual void ForgetRows() = 0;

  // These calls serve checkpoints, which go by partition (shard_plan.h). Owns returns whether this
  // rank stores a partition. The next call counts the initialised rows whose primary replica this
  // rank has, by partition. The last one visits them in blocks, keys ascending, with weights and
  // slots one after another; it is thread-safe for different partitions, and excludes steps,
  // lookups and SetRow.
  virtual bool Owns(int table, int64_t partition) const = 0;
  virtual std::vector<int64_t> CountRows(int table) const = 0;
  virtual void ForEachRowOf(
      int table, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, const T* const* rows)>& fn) const = 0;
  // Returns null if the tables do not note touched rows (EmbeddingOptions::track_touched; tables on
  // a device never do).
  virtual TouchedRows<T>* touched() { return nullptr; }
  // Returns the rows that an optimizer's step updated, or MarkUnpublished named, since Forget; null
  // if the tables do not note them (EmbeddingOptions::track_unpublished; never on a device).
  virtual MarkedRows<T>* unpublished() { return nullptr; }
  virtual OptimizerKind optimizer_kind() const = 0;
  virtual ThreadPool* pool() const = 0;

  // A keyed table over all ranks, after the last step.
  struct KeyedTable {
    int table = 0;
    int64_t rows = 0;
    int64_t admitted = 0;  // rows that the step created
    int64_t evicted = 0;   // rows that the step removed
    // With admission: occurrences of the step's batch, and those of keys without a row.
    int64_t occurrences = 0;
    int64_t unadmitted = 0;
  };
  // Returns the keyed tables, with no numbers before the first step.
  virtual std::vector<KeyedTable> keyed_tables() const { return {}; }

  // Returns the clock of RowRules::by_time, after the last step: 0 if no table has it. Whoever goes
  // on with a state sets what was returned then.
  virtual int64_t event_time() const { return 0; }
  virtual void set_event_time(int64_t /*seconds*/) {}

  virtual int64_t memory_bytes() const = 0;  // bytes of the rows and slots on this rank
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_EMBEDDING_STATE_H_
