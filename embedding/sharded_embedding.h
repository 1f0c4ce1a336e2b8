#ifndef ELASTOR_EMBEDDING_SHARDED_EMBEDDING_H_
#define ELASTOR_EMBEDDING_SHARDED_EMBEDDING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
#include "core/base/digest.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/optimizer/optimizer_options.h"
#include "core/tensor/panels.h"
#include "embedding/embedding_options.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"

namespace elastor {

// Embedding tables sharded over the ranks by a ShardPlan, and the exchange that serves a batch:
//   RouteIds   ids of this rank's rows -> unique (table, key) -> their owners   (any time earlier)
//   LookupEarly rows that the step before does not update                       (or not at all)
//   Lookup     owners gather rows and send them, unpooled, to who asked for them
//   ReturnRows rows of one leaf -> pooled activations in panels
//   TakeGradients    one leaf's dE, from panels
//   RouteGradients   per-leaf sums in order, folded along the leaf tree, to the owners; L2 added
//   Update     the optimizer on the owners
// One exchange for all tables per phase; only unique rows travel. Replicated tables take the same
// path, with every rank an owner of gradients and none of rows.
//
// Order of additions (docs/inside/design.md): within a leaf, an id's occurrences in order (row,
// field, position), in chunks of 32 occurrences each summed from +0 and added in order to the total
// (from +0); over leaves the tree with absent leaves skipped. All sums start at +0, so -0 never
// results.
template <typename T>
class ShardedEmbedding final : public EmbeddingState<T> {
 public:
  using Options = EmbeddingOptions;

  // Routing of one batch: made by RouteIds, used by the calls below. Reusable; buffers only grow.
  class Routing {
   public:
    ~Routing();

   private:
    friend class ShardedEmbedding;
    struct State;
    explicit Routing(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  // plan, communicator and pool outlive the object. Allocates the rows this rank owns (zero pages;
  // a row's values are made at first touch, except with dense-equivalent Adam: all at once here).
  ShardedEmbedding(Options options, const ShardPlan* plan, Communicator* communicator,
                   ThreadPool* pool);
  ~ShardedEmbedding() override;

  std::unique_ptr<Routing> MakeRouting() const;

  // Finds the unique ids and exchanges them. batch.leaf_offsets must be those of LeavesOfRank.
  // Reads nothing of the tables, so the next batch's ids can be routed while this batch computes,
  // by the communication thread. With RouteThreads::kCaller the call uses no threads of the pool.
  // User error, on every rank, naming field and id when an id is outside its table.
  enum class RouteThreads { kAll, kCaller };
  Status RouteIds(const SparseBatch& batch, Routing* routing,
                  RouteThreads threads = RouteThreads::kAll);

  enum class Purpose {
    kTrain,     // rows seen for the first time are initialised and stay
    kEvaluate,  // rows seen for the first time are computed and forgotten; the state never changes
  };
  // Behind a tier (EmbeddingOptions::tier): begins to bring the rows of the routed batch, which is
  // the next one to train on, while the present one computes. To be called after the present one's
  // Lookup and before its Update.
  void FetchAhead(Routing* routing) const;
  bool has_tier() const;

  // Returns whether rows of the next batch may travel while step `step` computes: not with
  // dense-equivalent Adam, nor where vectors go by host, nor if a pass that removes rows follows
  // the step. Alike on all ranks.
  bool MayLookupEarly(int64_t step) const;
  // Sends the rows of the next batch that the step of `present` does not update (early_rows.h),
  // while that step computes. Lookup then sends the others; all of them, if a pass has removed rows
  // since. Changes no table: a row that does not exist is made aside. The calling thread works
  // alone, as in RouteIds. To be called after present's Lookup and before its Update. REQUIRES:
  // MayLookupEarly.
  Status LookupEarly(const Routing& present, Routing* next);
  // Rows that this rank has sent for steps: all, and those that were early.
  struct SentRows {
    int64_t all = 0, early = 0;
  };
  SentRows sent_rows() const;

  // Gathers rows on their owners and sends them to the ranks that asked for them. Rows of this rank
  // are used in place, so the routing serves ReturnRows until the next Update.
  Status Lookup(Purpose purpose, Routing* routing);

  // Pools the bags of local rows [row_begin, row_begin + e.rows) into e: [rows, sum of the fields'
  // widths], field after field. A bag's rows are added in order; a mean multiplies the sum by
  // 1/length. Thread-safe after Lookup.
  void ReturnRows(const Routing& routing, int64_t row_begin, Panels<T> e) const;

  // Keeps the gradient of those rows' pooled activations (for a mean times 1/length, once a bag).
  // Call it exactly once for every local row between Lookup(kTrain) and RouteGradients. Thread-safe
  // for different rows.
  void TakeGradients(int64_t row_begin, Panels<const T> de, Routing* routing) const;

  // Does the part of RouteGradients that sends nothing, while the communicator is in use. It may be
  // left out.
  void SumGradients(Routing* routing);
  // Sends gradients to the owners of their rows and folds them there; then g = gradient + l2 * w
  // for touched rows (every row with dense-equivalent Adam). Adds sum g^2 to *squared_norm and,
  // with l2 > 0, sum w^2 over the same rows to *squared_weights, each row counted once over all
  // ranks (a row's sum is core/optimizer/sum_of_squares.h). Nothing is updated yet. global_rows:
  // number of rows of the whole batch.
  Status RouteGradients(int64_t global_rows, Routing* routing, ExactSum* squared_norm,
                        ExactSum* squared_weights);

  // Takes the optimizer's step on the rows this rank owns, with gradient scale * g. step counts
  // from 1.
  void Update(double scale, double learning_rate, int64_t step, Routing* routing);

  // Returns, for every keyed table after Lookup(kTrain), kKeyedTableCounts numbers of this rank:
  // rows, keys of the batch that have one, rows that the lookup created, and with admission the
  // batch's occurrences, all and those of keys without a row. Behind a tier two numbers more:
  // whether a batch has taken too much of its memory, and the bytes. The caller adds them up over
  // the ranks for ApplyRules.
  std::vector<int64_t> CountKeyedRows() const;
  // Removes, after Update of the same step, the rows that the tables' rules say. Collective. sums:
  // CountKeyedRows over all ranks. User error, on all ranks, when a table is full or too small for
  // the batch, or the memory of a tier too small.
  Status ApplyRules(int64_t step, std::span<const int64_t> sums);

  // Marks the rows of the routed ids as unpublished, as Update does. REQUIRES: track_unpublished.
  void MarkUnpublished(const Routing& routing);
  // Tells of keys of a keyed table whether the last publication has their rows. Afterwards those of
  // rows that do not exist now are unpublished()'s gone keys. REQUIRES: track_unpublished.
  void NotePublished(int table, std::span<const int64_t> keys, bool have_rows);

  int64_t output_features() const;  // sum of the fields' widths
  // Returns the hosts of the ranks if vectors go by host; null if they go straight.
  const RankHosts* hosts() const;

  // EmbeddingState's calls.
  void AddToDigest(Digest* digest) const override;
  void ForEachRow(const std::function<void(int table, int64_t key, const T* weights,
                                           const T* slots)>& fn) const override;
  void SetRow(int table, int64_t key, const T* weights, const T* slots) override;
  void RemoveRow(int table, int64_t key) override;
  void ForgetRows() override;
  bool Owns(int table, int64_t partition) const override;
  std::vector<int64_t> CountRows(int table) const override;
  void ForEachRowOf(int table, const Range& partitions,
                    const std::function<void(std::span<const int64_t> keys, const T* const* rows)>&
                        fn) const override;
  TouchedRows<T>* touched() override;
  MarkedRows<T>* unpublished() override;
  OptimizerKind optimizer_kind() const override;
  ThreadPool* pool() const override;
  std::vector<typename EmbeddingState<T>::KeyedTable> keyed_tables() const override;
  int64_t event_time() const override;
  void set_event_time(int64_t seconds) override;
  int64_t memory_bytes() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_SHARDED_EMBEDDING_H_
