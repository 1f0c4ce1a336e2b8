// Letters and words (docs/inside/design.md):
//   N       ranks of the job, communicator->size()
//   V       virtual shards, options.leaves; a power of two
//   B       rows of the global batch, batch.global_rows; fewer at an epoch's end
//   leaf    one virtual shard's rows of a batch
//   node    a leaf, or the sum of two children in the binary tree over the leaves
//   pass    rows that a thread computes at once: some of a leaf's, or all leaves of a node
//   bucket  a range of the dense parameters whose gradients travel together
//   slice   the part of a bucket that one rank sums and updates
#include "trainer/step/train_step.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <utility>

#include "collective/leaf_tree.h"
#include "core/base/exhausted.h"
#include "core/base/leaf_stack.h"
#include "core/task/branch_factors.h"
#include "trainer/step/thread_shares.h"

namespace elastor {
namespace {

constexpr double kNormEpsilon = 1e-6;  // PyTorch's clip_grad_norm_

// Returns when other threads have let `number` reach `least`.
void AwaitAtLeast(const std::atomic<int>& number, int least) {
  for (int now = number.load(); now < least; now = number.load()) number.wait(now);
}

void Increment(std::atomic<int>* number) {
  number->fetch_add(1);
  number->notify_all();
}

std::vector<Range> SlicesOfRank(const ParameterLayout& layout, const Communicator& communicator) {
  std::vector<Range> slices;
  for (const Range& bucket : layout.buckets()) {
    slices.push_back(SliceOfRank(bucket, communicator.rank(), communicator.size()));
  }
  return slices;
}

}  // namespace

// What one computing thread owns.
template <typename T>
struct TrainStep<T>::Thread {
  Thread(const WorkspacePlan& plan, int64_t max_rows, int64_t row_losses,
         const ParameterLayout& layout, const Range& leaves)
      : leaves(leaves),
        workspace(plan, max_rows),
        fold(&layout, leaves),
        losses(max_rows * row_losses) {}
  // Passes of a step, in order.
  std::vector<StepPass> passes;
  Range leaves;
  Workspace<T> workspace;
  GradientFold<T> fold;
  std::vector<double> losses;
  ExactSum loss;
  std::vector<ExactSum> batch_losses;
  // Buckets of this step's weights that all threads have repacked, as this one knows.
  int buckets_ready = 0;
  std::function<void(int bucket)> await;  // AwaitWeights, for its passes
};

template <typename T>
TrainStep<T>::TrainStep(const TrainStepOptions& options, const Graph* graph,
                        ShardedEmbedding<T>* embedding, Communicator* communicator,
                        ThreadPool* pool)
    : options_(options),
      graph_(graph),
      executor_(*graph, CpuRewrites::kAll, options.precision),
      loss_(MakeLoss<T>(options.task)),
      embedding_(embedding),
      communicator_(communicator),
      pool_(pool),
      pass_rows_(TrainingPassRows(options, *graph)),
      evaluation_pass_rows_(EvaluationPassRows(options, *graph)),
      own_leaves_(LeavesOfRank(communicator->rank(), communicator->size(), options.leaves)),
      one_leaf_a_pass_(OneLeafAPass(*graph)),
      share_leaves_(SharesLeaves(graph->needs_whole_leaf(), own_leaves_, pool->threads())),
      slices_(SlicesOfRank(graph->parameters(), *communicator)),
      reduce_order_(ReduceOrder(static_cast<int>(slices_.size()), options.overlap)),
      reducer_(communicator, options.leaves, graph->parameters().buckets(), embedding->hosts()),
      optimizer_(options.dense, graph->parameters(), slices_, pool),
      weights_(graph->parameters().flat_size()),
      routed_{embedding->MakeRouting()},
      next_{embedding->MakeRouting()},
      may_come_late_(WeightsComeLate(options, *graph, communicator->size())),
      buckets_there_(static_cast<int>(slices_.size())),
      repacked_(slices_.size()) {
  static_assert(kParameterBlock == kSliceBlock);
  CHECK_EQ(graph->outputs(), options.task.graph_outputs());
  CHECK_EQ(graph->features().table_features(), embedding->output_features());
  if (graph->needs_whole_leaf()) CHECK_GT(options.batch_rows, 0);
  {
    const MemoryPurpose purpose("activations of a computing thread");
    for (int t = 0; t < pool->threads(); ++t) {
      const ThreadShare share = ShareOfThread(options, *graph, own_leaves_, t, pool->threads());
      threads_.push_back(
          std::make_unique<Thread>(executor_.workspace_plan(), share.pass_rows,
                                   std::max(options.task.losses(), options.task.batch_losses()),
                                   graph->parameters(), share.leaves));
      threads_[t]->buckets_ready = static_cast<int>(slices_.size());
      threads_[t]->await = [this, t](int bucket) { AwaitWeights(bucket, t); };
    }
  }
  if (options.overlap) worker_ = std::make_unique<CommunicationWorker>();
  graph->parameters().Initialize(options.seed, weights_.data());
  WeightsChanged();
}

template <typename T>
TrainStep<T>::~TrainStep() = default;

// One step, top to bottom.
template <typename T>
StatusOr<StepResult> TrainStep<T>::Run(const LocalBatch& batch, const LocalBatch* next,
                                       double learning_rate, int64_t requests) {
  CHECK_EQ(requests >> kRequestBits, 0);
  StepClock clock(communicator_, &this->times_);
  clock.Enter(StepPart::kRouteIds);
  if (!next_routed_) ELASTOR_RETURN_IF_ERROR(Route(batch, RouteThreads::kAll, &next_));
  std::swap(routed_, next_);
  next_routed_ = false;
  // Rows that are not in memory come while this batch computes.
  if (embedding_->has_tier() && worker_ == nullptr && next != nullptr) {
    ELASTOR_RETURN_IF_ERROR(Route(*next, RouteThreads::kAll, &next_));
    next_routed_ = true;
  }

  clock.Enter(StepPart::kLookup);
  ELASTOR_RETURN_IF_ERROR(
      embedding_->Lookup(ShardedEmbedding<T>::Purpose::kTrain, routed_.ids.get()));
  if (next_routed_) embedding_->FetchAhead(next_.ids.get());

  clock.Enter(StepPart::kCompute);
  PlanPasses(batch);
  if (options_.task.batch_losses() > 0) ELASTOR_RETURN_IF_ERROR(SumBatchLosses(batch));
  Scalars scalars;
  ELASTOR_RETURN_IF_ERROR(Compute(batch, next, &scalars));

  // Gradients, with the penalty's part, are complete before the norm, the norm before any update.
  clock.Enter(StepPart::kReduce);
  for (const int bucket : reduce_order_) {
    if (worker_ == nullptr) ELASTOR_RETURN_IF_ERROR(ReduceBucket(bucket, batch.global_rows));
  }
  optimizer_.AddL2(weights_.data(), &scalars.squared_norm, &scalars.penalty);

  clock.Enter(StepPart::kRouteGradients);
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteGradients(batch.global_rows, routed_.ids.get(),
                                                     &scalars.squared_norm, &scalars.squared_rows));

  clock.Enter(StepPart::kScalars);
  for (int i = 0; i < kRequestBits; ++i) scalars.requests[i] = requests >> i & 1;
  scalars.keyed_rows = embedding_->CountKeyedRows();
  ELASTOR_RETURN_IF_ERROR(SumScalars(&scalars));
  StepResult result;
  result.loss = routed_.weight == 0 ? 0 : scalars.loss.Value() / routed_.weight;
  result.l2 = scalars.penalty.Value() + 0.5 * options_.embedding_l2 * scalars.squared_rows.Value();
  result.gradient_norm = std::sqrt(scalars.squared_norm.Value());
  result.requests = scalars.requests;
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
    return DivergedAtStep(this->steps() + 1);
  }
  const double scale =
      options_.clip_norm > 0
          ? std::min(1.0, options_.clip_norm / (result.gradient_norm + kNormEpsilon))
          : 1.0;
  clock.Enter(StepPart::kUpdate);
  ELASTOR_RETURN_IF_ERROR(Apply(scale, learning_rate, /*goes_on=*/next != nullptr, scalars));
  clock.End();
  return result;
}

// The batch's ids and weight.
template <typename T>
Status TrainStep<T>::Route(const LocalBatch& batch, RouteThreads threads, Routed* routed) {
  CHECK_EQ(static_cast<int64_t>(batch.weights.size()), options_.sample_weights ? batch.rows() : 0);
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteIds(batch.sparse, routed->ids.get(), threads));
  routed->weight = static_cast<double>(batch.global_rows);
  if (!options_.sample_weights) return OkStatus();
  ExactSum sum;
  for (const float weight : batch.weights) sum.Add(weight);
  auto words = sum.ToWords();
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kScalars, words));
  routed->weight = ExactSum::FromWords(words).Value();
  return OkStatus();
}

template <typename T>
void TrainStep<T>::PlanPasses(const LocalBatch& batch) {
  const int64_t largest = one_leaf_a_pass_ ? 1 : PassLeavesOf(options_.leaves, batch.global_rows);
  for (const auto& thread : threads_) {
    thread->passes =
        PassesOfThread(thread->leaves, options_.leaves, batch.global_rows, largest, pass_rows_);
  }
}

// Calls work(thread) for every computing thread, on it; on the caller where all threads share
// leaves.
template <typename T>
void TrainStep<T>::OnThreads(const std::function<void(int)>& work) {
  if (!share_leaves_) return pool_->Run(work);
  for (int t = pool_->threads() - 1; t >= 0; --t) work(t);
}

// The losses whose means over the batch the gradients need, by forward passes alone. A thread takes
// its first pass last and keeps its values for Compute.
template <typename T>
Status TrainStep<T>::SumBatchLosses(const LocalBatch& batch) {
  const int64_t count = options_.task.batch_losses();
  OnThreads([&](int t) {
    Thread& thread = *threads_[t];
    thread.batch_losses.assign(count, {});
    for (size_t i = thread.passes.size(); i-- > 0;) {
      const Pass<T> pass = PlacePass(batch, thread.passes[i], t);
      const int64_t begin = LocalRow(batch, thread.passes[i]);
      ForwardPass(pass, begin);
      double* const losses = thread.losses.data();
      for (const LeafRows& leaf : pass.leaves.leaves()) {
        const LossRows<T> rows = LossOf(batch, pass, begin + leaf.first_row, leaf);
        loss_->BatchLosses(rows, losses, leaf.Of(executor_.LogitGradients(pass)));
        for (int64_t at = 0; at < leaf.rows * count; ++at) {
          const double weight = rows.weights == nullptr ? 1.0 : rows.weights[at / count];
          thread.batch_losses[at % count].Add(weight * losses[at]);
        }
      }
    }
  });
  std::vector<int64_t> words;
  for (int64_t i = 0; i < count; ++i) {
    ExactSum sum;
    for (const auto& thread : threads_) sum.Merge(thread->batch_losses[i]);
    const auto of_sum = sum.ToWords();
    words.insert(words.end(), of_sum.begin(), of_sum.end());
  }
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kScalars, words));
  std::vector<double> means(count);
  for (int64_t i = 0; i < count; ++i) {
    std::array<int64_t, ExactSum::kWords> sum;
    std::copy_n(words.begin() + i * ExactSum::kWords, sum.size(), sum.begin());
    means[i] = routed_.weight == 0 ? 0 : ExactSum::FromWords(sum).Value() / routed_.weight;
  }
  gradient_factors_.resize(count);
  BranchFactors(means.data(), options_.task.branches, gradient_factors_.data());
  return OkStatus();
}

// Forward and backward over this rank's leaves. With overlap, new weights that other ranks own, the
// next batch's ids, those of its rows that this step does not update, and finished buckets of dense
// gradients travel meanwhile, in the same order on every rank.
template <typename T>
Status TrainStep<T>::Compute(const LocalBatch& batch, const LocalBatch* next, Scalars* scalars) {
  std::vector<std::future<Status>> jobs;
  PostLateWeights(&jobs);
  if (worker_ != nullptr && next != nullptr) {
    const bool early =
        options_.first_ids_first && embedding_->MayLookupEarly(this->optimizer_step());
    jobs.push_back(worker_->Post([this, next, early]() -> Status {
      ELASTOR_RETURN_IF_ERROR(Route(*next, RouteThreads::kCaller, &next_));
      embedding_->FetchAhead(next_.ids.get());
      return early ? embedding_->LookupEarly(*routed_.ids, next_.ids.get()) : OkStatus();
    }));
    next_routed_ = true;
  }
  // Buckets complete in the same order on every thread, so the last thread posts them in order.
  const size_t jobs_before = jobs.size();
  std::vector<std::atomic<int>> waiting(slices_.size());
  for (auto& threads : waiting) threads = pool_->threads();
  const auto bucket_ready = [&](int bucket) {
    if (waiting[bucket].fetch_sub(1) > 1 || worker_ == nullptr) return;
    CHECK_EQ(bucket, reduce_order_[jobs.size() - jobs_before]);
    jobs.push_back(worker_->Post(
        [this, bucket, rows = batch.global_rows] { return ReduceBucket(bucket, rows); }));
  };
  const auto compute = [&](int t) {
    const MemoryPurpose purpose("gradient sums of a computing thread");
    Thread& thread = *threads_[t];
    thread.loss = ExactSum();
    thread.fold.BeginStep(bucket_ready);
    for (const StepPass& pass : thread.passes) ComputePass(batch, pass, t);
    AwaitWeights(static_cast<int>(slices_.size()) - 1, t);
    if (thread.passes.empty()) thread.fold.FinishWithoutLeaves();
  };
  OnThreads(compute);
  for (const auto& thread : threads_) scalars->loss.Merge(thread->loss);
  embedding_->SumGradients(routed_.ids.get());  // while the last buckets travel
  Status status;
  for (std::future<Status>& job : jobs) {
    if (Status done = job.get(); status.ok()) status = std::move(done);
  }
  return status;
}

// The first layers' weights come first.
template <typename T>
void TrainStep<T>::PostLateWeights(std::vector<std::future<Status>>* jobs) {
  if (!std::exchange(late_weights_, false)) return;
  buckets_there_ = 0;
  for (auto& threads : repacked_) threads = 0;
  for (const auto& thread : threads_) thread->buckets_ready = 0;
  for (int b = 0; b < static_cast<int>(slices_.size()); ++b) {
    jobs->push_back(worker_->Post([this, b] {
      // Where it fails nobody waits for ever: the step returns its status.
      Status status = reducer_.Gather(graph_->parameters().buckets()[b], weights_.data());
      executor_.Prepare(weights_.data(), b);
      Increment(&buckets_there_);
      return status;
    }));
  }
}

// Every thread repacks a part of each bucket and waits for the others' parts, before the first node
// that reads it.
template <typename T>
void TrainStep<T>::AwaitWeights(int bucket, int t) {
  for (int& b = threads_[t]->buckets_ready; b <= bucket; ++b) {
    AwaitAtLeast(buckets_there_, b + 1);
    executor_.Repack(weights_.data(), b, t, pool_->threads());
    Increment(&repacked_[b]);
    AwaitAtLeast(repacked_[b], pool_->threads());
  }
}

template <typename T>
Status TrainStep<T>::Settle() {
  if (!std::exchange(late_weights_, false)) return OkStatus();
  for (const Range& bucket : graph_->parameters().buckets()) {
    ELASTOR_RETURN_IF_ERROR(reducer_.Gather(bucket, weights_.data()));
  }
  WeightsChanged();
  return OkStatus();
}

// Returns the pass of the batch's rows that was planned. A node of several leaves is one pass; one
// leaf may take several.
template <typename T>
Pass<T> TrainStep<T>::PlacePass(const LocalBatch& batch, const StepPass& planned, int t) const {
  const Range& node = planned.node;
  if (graph_->needs_whole_leaf()) CHECK_LE(planned.node_rows, pass_rows_);
  const auto offsets = std::span<const int64_t>(batch.sparse.leaf_offsets)
                           .subspan(node.begin - own_leaves_.begin, node.size() + 1);
  const PassLeaves leaves =
      node.size() > 1 ? PassLeaves(node.begin, offsets) : PassLeaves(planned.rows.size());
  Pass<T> pass = MakePass(batch, LocalRow(batch, planned), leaves, t, /*training=*/true);
  pass.leaf_share = static_cast<double>(planned.node_rows) / static_cast<double>(batch.global_rows);
  return pass;
}

// Returns the batch's local row at which the pass begins.
template <typename T>
int64_t TrainStep<T>::LocalRow(const LocalBatch& batch, const StepPass& planned) const {
  return planned.rows.begin -
         RowsOfLeaf(own_leaves_.begin, options_.leaves, batch.global_rows).begin;
}

// Calls work(row, part) for parts of the pass, whose first row is the batch's local row `begin`:
// `part` has the tables' features in `view`, from local row `row` on.
template <typename T>
template <typename View, typename Work>
void TrainStep<T>::ShareRows(const Pass<T>& pass, int64_t begin, View view, const Work& work) {
  const int64_t numeric_features = graph_->features().numeric_features();
  const auto tables = view.Slice(numeric_features, view.features - numeric_features);
  for (const LeafRows& leaf : pass.leaves.leaves()) {
    pass.Share(leaf.rows, [&](int64_t first, int64_t last) {
      work(begin + leaf.first_row + first, leaf.Of(tables).Rows(first, last - first));
    });
  }
}

template <typename T>
void TrainStep<T>::ForwardPass(const Pass<T>& pass, int64_t begin) {
  ShareRows(pass, begin, executor_.Embeddings(pass),
            [&](int64_t row, Panels<T> e) { embedding_->ReturnRows(*routed_.ids, row, e); });
  executor_.Forward(pass);
}

// Returns the inputs of the loss of a leaf in a pass, whose first row is the batch's local row
// `row`. Rows whose weights are all zero have no gradient.
template <typename T>
LossRows<T> TrainStep<T>::LossOf(const LocalBatch& batch, const Pass<T>& pass, int64_t row,
                                 const LeafRows& leaf) const {
  return {.outputs = leaf.Of(executor_.Logits(pass)),
          .labels = batch.labels.data() + row * options_.task.labels(),
          .weights = options_.sample_weights ? batch.weights.data() + row : nullptr,
          .scale = routed_.weight == 0 ? T(0) : T(1) / static_cast<T>(routed_.weight),
          .factors = gradient_factors_.empty() ? nullptr : gradient_factors_.data()};
}

// Forward and backward over a pass. The forward pass of a thread's first one may be done
// (SumBatchLosses).
template <typename T>
void TrainStep<T>::ComputePass(const LocalBatch& batch, const StepPass& planned, int t) {
  Thread& thread = *threads_[t];
  thread.fold.BeginPass({.leaf = planned.first_leaf,
                         .next_leaf = planned.node.end,
                         .first_of_node = planned.first_of_node,
                         .last_of_node = planned.last_of_node,
                         .last_node = planned.last_node});
  const Pass<T> pass = PlacePass(batch, planned, t);
  const int64_t begin = LocalRow(batch, planned);
  const bool done = options_.task.batch_losses() > 0 && &planned == &thread.passes.front();
  if (!done) ForwardPass(pass, begin);
  for (const LeafRows& leaf : pass.leaves.leaves()) {
    const int64_t row = begin + leaf.first_row;
    const LossRows<T> rows = LossOf(batch, pass, row, leaf);
    loss_->Compute(rows, thread.losses.data(), leaf.Of(executor_.LogitGradients(pass)));
    const double* losses = thread.losses.data();
    for (int64_t i = 0; i < leaf.rows; ++i) {
      const double share =
          options_.task.RowShare(batch.labels.data() + (row + i) * options_.task.labels());
      for (const Task::Label& label : options_.task.learned) {
        const double loss = share * label.weight * *losses++;
        thread.loss.Add(rows.weights == nullptr ? loss : rows.weights[i] * loss);
      }
    }
  }
  executor_.Backward(pass);
  ShareRows(pass, begin, executor_.EmbeddingGradients(pass), [&](int64_t row, Panels<const T> de) {
    embedding_->TakeGradients(row, de, routed_.ids.get());
  });
}

template <typename T>
Pass<T> TrainStep<T>::MakePass(const LocalBatch& batch, int64_t begin, const PassLeaves& leaves,
                               int thread, bool training) const {
  Pass<T> pass;
  pass.workspace = &threads_[thread]->workspace;
  pass.sink = training ? &threads_[thread]->fold : nullptr;
  pass.pool = training && share_leaves_ ? pool_ : nullptr;
  pass.await = training ? &threads_[thread]->await : nullptr;
  pass.leaves = leaves;
  pass.training = training;
  pass.numeric = batch.numeric.data() + begin * graph_->features().numeric_fields;
  pass.lengths = batch.lengths.data() + begin * graph_->features().encoded_sequences();
  pass.seed = options_.seed;
  pass.step = static_cast<uint32_t>(this->steps());
  pass.first_row = batch.first_index + begin;
  return pass;
}

// The threads' nodes become the rank's, the ranks' the root, of which each rank takes its slice.
template <typename T>
Status TrainStep<T>::ReduceBucket(int bucket, int64_t batch_rows) {
  using Node = typename TreeFold<T>::Node;
  const Range range = graph_->parameters().buckets()[bucket];
  std::vector<Node> own;
  for (const auto& thread : threads_) {
    const auto nodes = thread->fold.nodes(bucket);
    own.insert(own.end(), nodes.begin(), nodes.end());
  }
  const std::vector<int64_t> leaves =
      NodeLeaves(communicator_->rank(), communicator_->size(), options_.leaves, batch_rows);
  std::vector<Node> nodes;
  size_t at = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const int64_t next = i + 1 < leaves.size() ? leaves[i + 1] : options_.leaves;
    std::vector<int64_t> below;
    std::vector<const T*> data;
    T* const result = own[at].data;
    for (; at < own.size() && own[at].leaf < next; ++at) {
      below.push_back(own[at].leaf);
      data.push_back(own[at].data);
    }
    if (below.size() > 1) FoldNodes<T>(below, data, range.size(), result);
    nodes.push_back({leaves[i], result});
  }
  return reducer_.Reduce(range, batch_rows, nodes, optimizer_.gradient(bucket));
}

template <typename T>
Status TrainStep<T>::SumScalars(Scalars* scalars) {
  ExactSum* const sums[] = {&scalars->loss, &scalars->squared_norm, &scalars->penalty,
                            &scalars->squared_rows};
  static_assert(std::size(sums) == kScalarSums);
  constexpr size_t kRequestsAt = kScalarWords - kRequestBits;
  std::vector<int64_t> words(kScalarWords);
  for (size_t i = 0; i < std::size(sums); ++i) {
    const auto own = sums[i]->ToWords();
    std::copy(own.begin(), own.end(), words.begin() + i * ExactSum::kWords);
  }
  std::copy(scalars->requests.begin(), scalars->requests.end(), words.begin() + kRequestsAt);
  words.insert(words.end(), scalars->keyed_rows.begin(), scalars->keyed_rows.end());
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kScalars, words));
  std::copy(words.begin() + kScalarWords, words.end(), scalars->keyed_rows.begin());
  for (size_t i = 0; i < std::size(sums); ++i) {
    std::array<int64_t, ExactSum::kWords> sum;
    std::copy_n(words.begin() + i * ExactSum::kWords, sum.size(), sum.begin());
    *sums[i] = ExactSum::FromWords(sum);
  }
  std::copy_n(words.begin() + kRequestsAt, kRequestBits, scalars->requests.begin());
  return OkStatus();
}

template <typename T>
Status TrainStep<T>::Apply(double scale, double learning_rate, bool goes_on,
                           const Scalars& scalars) {
  const int64_t step = this->BeginUpdate();
  optimizer_.Update(scale, learning_rate, step, weights_.data());
  late_weights_ = true;
  if (!may_come_late_ || !goes_on) ELASTOR_RETURN_IF_ERROR(Settle());
  embedding_->Update(scale, learning_rate, step, routed_.ids.get());
  return embedding_->ApplyRules(step, scalars.keyed_rows);
}

template <typename T>
Status TrainStep<T>::Evaluate(const LocalBatch& batch,
                              const std::function<void(const EvaluatedRows<T>&)>& visit) {
  ELASTOR_RETURN_IF_ERROR(Settle());
  // next_ may hold the next training batch's ids.
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteIds(batch.sparse, routed_.ids.get()));
  ELASTOR_RETURN_IF_ERROR(
      embedding_->Lookup(ShardedEmbedding<T>::Purpose::kEvaluate, routed_.ids.get()));
  const int64_t numeric_features = graph_->features().numeric_features();
  pool_->ParallelFor(batch.rows(), kPanelRows, [&](int t, int64_t part_begin, int64_t part_end) {
    for (int64_t row = part_begin; row < part_end; row += evaluation_pass_rows_) {
      const int64_t rows = std::min(evaluation_pass_rows_, part_end - row);
      const Pass<T> pass = MakePass(batch, row, PassLeaves(rows), t, /*training=*/false);
      const Panels<T> e = executor_.Embeddings(pass);
      double* const losses = threads_[t]->losses.data();
      embedding_->ReturnRows(*routed_.ids, row,
                             e.Slice(numeric_features, e.features - numeric_features));
      executor_.Forward(pass);
      const Panels<const T> logits = executor_.Logits(pass);
      loss_->Compute(
          {.outputs = logits, .labels = batch.labels.data() + row * options_.task.labels()}, losses,
          executor_.LogitGradients(pass));
      visit({.begin = row,
             .rows = rows,
             .logits = logits.Slice(0, options_.task.outputs()),
             .losses = losses,
             .probe = [&](int probe) { return executor_.ProbeOutput(pass, probe); }});
    }
  });
  return OkStatus();
}

template class TrainStep<float>;
template class TrainStep<double>;

}  // namespace elastor
