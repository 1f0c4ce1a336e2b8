#ifndef ELASTOR_EMBEDDING_OWNED_TABLES_H_
#define ELASTOR_EMBEDDING_OWNED_TABLES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "embedding/admission.h"
#include "embedding/embedding_layout.h"
#include "embedding/embedding_options.h"
#include "embedding/embedding_state.h"
#include "embedding/grow_buffer.h"
#include "embedding/id_route.h"
#include "embedding/row_store.h"
#include "embedding/row_tier.h"
#include "embedding/shard_plan.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "embedding/waiting_rows.h"
#include "embedding/wire_format.h"

namespace elastor {

// Sums the gradients of the unique ids `ids` of a table over their occurrences, on a thread.
using SumKeys = std::function<void(int thread, int64_t table, const Range& ids)>;

// The rows one rank owns (a share of each table, or a copy) and the operations on them: gather,
// fold of gradients, L2, norms, optimizer. Below, `rows` is indexed by owned key and `gradients` by
// place in the gradient array of an IdRoute. Nothing here communicates. Work is shared among the
// pool's threads by rows, which never changes a bit.
template <typename T>
class OwnedTables final : public TouchedRows<T> {
 public:
  // layout, plan and pool outlive the object; all options but tables and fields are used. With
  // dense-equivalent Adam all rows are created here. REQUIRES: with dense-equivalent Adam,
  // track_touched and track_unpublished are false.
  OwnedTables(const EmbeddingLayout* layout, const EmbeddingOptions& options, const ShardPlan* plan,
              int rank, ThreadPool* pool);

  // Behind a tier: sees to it that the pages of the owned keys' rows are in memory. fetched: they
  // were fetched ahead.
  void BringRows(const IdRoute& route, bool fetched) const;
  // Behind a tier: begins to bring them for the next batch, on a thread. Rows may be read
  // meanwhile, and written; none may be created or removed before the call returns.
  void FetchAhead(const IdRoute& route) const;
  bool has_tier() const { return tier_ != nullptr; }
  // See RowTier. REQUIRES: has_tier.
  int64_t TakeExcess() const { return tier_->TakeExcess(); }
  // Waits for the rows that FetchAhead brings.
  void AwaitRows() const {
    if (has_tier()) tier_->Wait();
  }

  // Sets rows[j] to the row of owned key j and creates the rows that do not exist yet.
  void FindOrCreate(const IdRoute& route, T** rows);
  // Does the same, but makes missing rows in *forgotten and changes no row's values at the last
  // step.
  void FindOrForget(const IdRoute& route, T** rows, GrowBuffer<T>* forgotten) const;
  // Does the same for the owned keys that are marked, by the calling thread alone; other rows[j]
  // are not set. Takes the marks of keys that have no row and may get none (admission).
  void FindMarked(const IdRoute& route, uint8_t* marks, T** rows, GrowBuffer<T>* forgotten) const;

  // Folds the nodes of each owned key along the leaf tree in place, adds l2 * w, and adds the
  // squares to the sums (ShardedEmbedding::RouteGradients). If sum_keys is not null, it is called
  // for keys just before they are folded; REQUIRES: route.alone(). Sets squares[j], unless it is
  // null, to the sum of squares of owned key j's gradient.
  void FinishGradients(const IdRoute& route, T* const* rows, const SumKeys& sum_keys, T* gradients,
                       double* squares, ExactSum* squared_norm, ExactSum* squared_weights);

  // Returns whether gradients are changed where they lie.
  bool changes_gradients() const {
    return optimizer_.l2 != 0 || gradient_format_ != WireFormat::kFloat32;
  }

  // Takes the optimizer's step on the rows of the owned keys; with dense-equivalent Adam, on every
  // row. squares: of FinishGradients, which row-wise Adagrad alone reads.
  void Update(const IdRoute& route, T* const* rows, const T* gradients, const double* squares,
              double scale, double learning_rate, int64_t step, int64_t event_time);

  // See ShardedEmbedding.
  void AddToDigest(Digest* digest) const;
  void ForEachRow(const std::function<void(int table, int64_t key, const T* weights,
                                           const T* slots)>& fn) const;
  void SetRow(int table, int64_t key, const T* weights, const T* slots);
  void RemoveRow(int table, int64_t key);
  void ForgetRows();
  bool Owns(int table, int64_t partition) const { return plan_->Stores(table, partition, rank_); }
  std::vector<int64_t> CountRows(int table) const;
  void ForEachRowOf(
      int table, const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, const T* const* rows)>& fn) const;
  int threads() const { return pool_->threads(); }
  OptimizerKind kind() const { return optimizer_.rule.kind; }
  int64_t memory_bytes() const;

  // TouchedRows' calls. REQUIRES: track_touched.
  void Forget() override;
  void KeepRecord(int table, int64_t key, const Digest& record) override;
  void KeepRecords(Digest* digest) override;
  Digest KeptRecords(RowSet set) const override;
  std::vector<int64_t> CountMarkedRows(int table) const override;
  void ForEachMarkedRowOf(int table, const Range& partitions,
                          const std::function<void(std::span<const int64_t> keys,
                                                   const T* const* rows)>& fn) const override;
  void AddTouchedToDigest(Digest* digest) const override;
  std::vector<int64_t> CountGoneKeys(int table) const override;
  void ForEachGoneKeyOf(int table, const Range& partitions,
                        const std::function<void(int64_t key)>& fn) const override;
  bool tracks_touched() const { return track_touched_; }

  // Marks the rows of the owned keys, those that exist, as unpublished: as Update does.
  void MarkUnpublished(const IdRoute& route);
  // See ShardedEmbedding.
  void NotePublished(int table, std::span<const int64_t> keys, bool have_rows);
  MarkedRows<T>* unpublished() { return track_unpublished_ ? &unpublished_ : nullptr; }

  // ---- Rules of keyed tables.
  // Where rows leave by their times: those that came without a use are as old as the clock's begin.
  void BeginClock(int64_t event_time);
  // Returns the rows of a keyed table whose primary replica this rank has.
  int64_t LiveRows(int table) const;
  // What the last FindOrCreate met of a keyed table, in the partitions whose primary replica this
  // rank has.
  struct Met {
    int64_t keys = 0;     // that have a row now
    int64_t created = 0;  // of those, new ones
    // With admission: occurrences of keys, and those of keys without a row.
    int64_t occurrences = 0;
    int64_t unadmitted = 0;
  };
  const Met& met(int table) const { return met_[table]; }
  // Calls fn(thread, key, score) for those rows, on all threads.
  void ForEachScore(int table,
                    const std::function<void(int thread, int64_t key, uint64_t score)>& fn) const;
  // Removes the rows for which leaves(key, score) is true, copies on this rank too. Returns how
  // many of them this rank had the primary replica of.
  int64_t RemoveRows(int table, const std::function<bool(int64_t key, uint64_t score)>& leaves);

 private:
  // The sums of squares of one thread.
  struct SquaredSums {
    ExactSum gradients;
    ExactSum weights;
  };

  class Unpublished final : public MarkedRows<T> {
   public:
    explicit Unpublished(OwnedTables* tables) : tables_(*tables) {}
    void Forget() override {
      for (RowStore<T>& store : tables_.stores_) store.ForgetUnpublished();
    }
    std::vector<int64_t> CountMarkedRows(int table) const override {
      return tables_.Count(RowSet::kUnpublished, table);
    }
    void ForEachMarkedRowOf(int table, const Range& partitions,
                            const std::function<void(std::span<const int64_t> keys,
                                                     const T* const* rows)>& fn) const override {
      tables_.Visit(RowSet::kUnpublished, table, partitions, fn);
    }
    std::vector<int64_t> CountGoneKeys(int table) const override;
    void ForEachGoneKeyOf(int table, const Range& partitions,
                          const std::function<void(int64_t key)>& fn) const override;

   private:
    OwnedTables& tables_;
  };

  T InitialSlot() const;
  bool dense() const { return optimizer_.rule.kind == OptimizerKind::kDenseAdam; }
  bool every_row_has_gradient() const { return dense() && optimizer_.l2 > 0; }
  int64_t Slots(int64_t table) const {
    return RowShapeOf(layout_->table(table), optimizer_.rule.kind).slots;
  }
  // Returns whether this rank has the primary replica of a row that it stores.
  bool HasPrimary(int64_t table, int64_t key) const {
    return !plan_->replicated(static_cast<int>(table)) ||
           HasPrimaryOf(table, layout_->table(table).keys().PartitionOf(key));
  }
  // Returns whether this rank has the primary replica of a partition.
  bool HasPrimaryOf(int64_t table, int64_t partition) const {
    return plan_->PrimaryRank(static_cast<int>(table), partition) == rank_;
  }
  // Returns the pages of the owned keys' rows that are on the disk.
  std::vector<RowTier::Page> PagesOf(const IdRoute& route) const;
  bool keyed(int64_t table) const { return layout_->table(table).keyed; }
  // Whether publications have the table's rows, and it notes which.
  bool notes_published(int64_t table) const {
    return track_unpublished_ && keyed(table) && !layout_->table(table).counts();
  }
  // Marks as unpublished the shared rows, those that exist, of the keys' partitions. More of them
  // than keys without a row train: which keys these were is forgotten, and the marks must follow
  // from the ids alone.
  void MarkSharedUnpublished(int64_t table, std::span<const int64_t> keys);
  void CreateAllRows(int64_t table);
  // If rows wait: brings these to the last step. Thread-safe for different rows.
  void CatchUp(int64_t table, std::span<T* const> rows) const {
    if (waiting_) waiting_->CatchUp(table, rows);
  }
  // The same for the next part of every table's rows.
  void CatchUpNextPart();
  // Calls fn(keys, rows) for the rows of a set in part `part` of `parts`, at the last step.
  void VisitPart(RowSet set, int64_t table, int part, int parts,
                 const std::function<void(std::span<const int64_t>, T* const*)>& fn) const;
  void MakeAdmission(int64_t table);
  // Counts what the lookup has met of a keyed table. missing: keys that had no row.
  void CountMet(const IdRoute& route, int64_t table, int64_t missing);
  // Adds up the gradients of shared rows, adds l2 * w, and adds the squares to the sums.
  void SumShared(const IdRoute& route, const T* gradients, std::vector<SquaredSums>* sums);
  template <typename Rule>
  void UpdateShared(const Rule& rule, T scale, int64_t step);
  // Calls work(begin, end) for runs of owned keys of a table that have rows of their own.
  template <typename Work>
  void ForOwnRows(int64_t table, T* const* rows, const Range& keys, const Work& work) const;
  // Calls fn(table, key, record) for the rows of a set whose primary replica this rank has, on all
  // threads, and adds the records to *digest.
  template <typename Fn>
  void ForEachRecord(RowSet set, const Fn& fn, Digest* digest) const;
  // Adds to *digest what fn(thread, part) adds to each thread's part.
  template <typename Fn>
  void SumOverThreads(const Fn& fn, Digest* digest) const;
  std::vector<int64_t> Count(RowSet set, int table) const;
  void Visit(RowSet set, int table, const Range& partitions,
             const std::function<void(std::span<const int64_t>, const T* const*)>& fn) const;
  // Adds the squares of up to kGrain rows, of weights unless they are null; sets squares[i], unless
  // it is null, to those of gradients[i].
  void AddSquares(int64_t table, std::span<const int64_t> keys, const T* const* gradients,
                  const T* const* weights, double* squares, SquaredSums* sums) const;
  // known: untouched_ is used, from which what the rows would have added is taken.
  void FoldTouched(const IdRoute& route, T* const* rows, const SumKeys& sum_keys, T* gradients,
                   double* squares, bool known, std::vector<SquaredSums>* sums) const;
  void FoldKeys(const IdRoute& route, T* const* rows, int64_t table, const Range& keys,
                T* gradients, double* squares, bool known, SquaredSums* sums) const;
  // Adds to the sums, or takes from them, what up to kGrain rows add when no batch touches them;
  // what is taken leaves the sum of weights alone. scratch: room for their gradients.
  enum class Sign { kPlus, kMinus };
  void AddUntouched(int64_t table, std::span<const int64_t> keys, const T* const* rows, Sign sign,
                    T* scratch, SquaredSums* sums) const;
  // next: by thread, where every row has a gradient what the new weights add to untouched_.
  template <typename Rule>
  void UpdateTouched(const Rule& rule, const IdRoute& route, T* const* rows, const T* gradients,
                     const double* squares, T scale, int64_t step, int64_t event_time,
                     std::vector<SquaredSums>* next);
  template <typename Rule>
  void UpdateUntouched(const Rule& rule, const IdRoute& route, T scale,
                       std::vector<SquaredSums>* next);

  // Calls work(table, begin, end) for ranges that cover the owned keys [keys.begin, keys.end).
  template <typename Work>
  void ForTablesOf(const IdRoute& route, const Range& keys, const Work& work) const;
  // Calls work(thread, table, begin, end) for ranges that cover the owned keys.
  template <typename Work>
  void ForOwnedKeys(const IdRoute& route, const Work& work) const;
  // Calls work(thread, table, keys, rows, scratch) for blocks of up to kGrain rows that no owned
  // key names. scratch has room for as many of the widest rows.
  template <typename Work>
  void ForUntouchedRows(const IdRoute& route, const Work& work);

  // Constant after construction.
  const EmbeddingLayout* layout_;
  SparseOptimizerOptions optimizer_;
  WireFormat gradient_format_;
  const ShardPlan* plan_;
  int rank_;
  ThreadPool* pool_;
  RowTier* tier_;
  bool track_touched_;
  bool track_unpublished_;
  bool has_keyed_ = false;
  std::vector<uint64_t> names_;  // name hashes of the tables' records in the digest

  std::vector<RowStore<T>> stores_;  // by table
  // By table; null where all keys are admitted.
  std::vector<std::unique_ptr<Admission<T>>> admissions_;
  std::vector<Met> met_;  // by table; keyed ones alone

  // Where every row has a gradient: the sums of the next step if it touched no row. They are made
  // while rows are updated, and are exact, so that rows can be taken from them.
  SquaredSums untouched_;
  std::atomic<bool> untouched_known_ = false;  // threads set rows together
  std::optional<WaitingRows<T>> waiting_;      // of all tables, if rows wait
  Unpublished unpublished_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_OWNED_TABLES_H_
