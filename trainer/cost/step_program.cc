#include "trainer/cost/step_program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collective/dense_reduce.h"
#include "core/tensor/panels.h"
#include "trainer/step/thread_shares.h"

namespace elastor {
namespace {

// Writes the threads of one rank: the main thread, which computes too, the other computing threads,
// and with overlap the one that owns the communicator meanwhile (docs/inside/design.md, "One
// step").
class RankWriter {
 public:
  // Signals of a step: threads have completed a bucket, the computation has begun, all that compute
  // are done, the same two of the losses that gradients need, the weights of a bucket have come,
  // and the communication is done.
  static int Signals(int buckets) { return 2 * buckets + 5; }

  RankWriter(const StepModel& model, const JobDemand& demand, int rank, const StepProgram& program)
      : program_(program),
        model_(model),
        work_(*model.work),
        demand_(demand),
        rank_(rank),
        calls_(program.calls),
        buckets_(program.buckets),
        nodes_(model.shape.ranks, model.shape.leaves, demand.batch.rows),
        host_nodes_(
            model.shape.hosts == nullptr
                ? HostNodes()
                : HostNodes(*model.shape.hosts, nodes_, model.shape.ranks, model.shape.leaves)) {
    threads_.resize(model.threads + (model.shape.overlap ? 1 : 0));
    for (SimThread& thread : threads_) thread.rank = rank;
    for (int t = 0; t < model.threads; ++t) MeasurePasses(t);
  }

  void WriteStep(int step) {
    step_ = step;
    Enter(StepPart::kRouteIds);
    const bool routes = !model_.shape.overlap;
    if (routes) {
      Work(StepPart::kRouteIds, work_.UniqueIds(Asked(asked().occurrences)), /*shared=*/true);
      Calls(Phase::kIdExchange);
      Work(StepPart::kRouteIds, work_.OwnedKeys(listed()), /*shared=*/false);
      Calls(Phase::kScalars, StepPart::kRouteIds);
    }
    Enter(StepPart::kLookup);
    Work(StepPart::kLookup, work_.FindRows(owned()) + work_.CopyRows(sent_rows() - early_rows()),
         true);
    Calls(Phase::kRowExchange);

    Enter(StepPart::kCompute);
    Compute();

    Enter(StepPart::kReduce);
    for (const int bucket : ReduceOrder(buckets_, model_.shape.overlap)) {
      if (!model_.shape.overlap) ReduceBucket(StepPart::kReduce, bucket, &main());
    }
    Work(StepPart::kReduce, work_.NormDense(own_parameters()), /*shared=*/true);
    Enter(StepPart::kRouteGradients);
    if (model_.shape.ranks == 1) SumGradients(StepPart::kRouteGradients);
    Calls(Phase::kGradientExchange);
    Work(StepPart::kRouteGradients,
         (model_.shape.ranks > 1 ? work_.Fold(static_cast<double>(demand_.summed[rank_])) : 0) +
             work_.NormRows(Elements(owned())),
         true);
    Enter(StepPart::kScalars);
    Calls(Phase::kScalars, StepPart::kScalars);

    Enter(StepPart::kUpdate);
    Work(StepPart::kUpdate, work_.UpdateDense(own_parameters()), true);
    Calls(Phase::kDenseGather);
    Work(StepPart::kUpdate, work_.UpdateRows(Elements(owned())), true);
    if (!model_.shape.late_weights) Work(StepPart::kUpdate, work_.Repack(parameters()), true);
    Mark(StepProgram::kEnd, &main());
  }

  std::vector<SimThread> TakeThreads() { return std::move(threads_); }
  const std::array<double, kStepParts>& work() const { return seconds_; }

 private:
  SimThread& main() { return threads_[0]; }
  SimThread& worker() { return threads_.back(); }
  const RouteDemand& asked() const { return demand_.batch.routes.of_rank[rank_]; }
  static double Asked(int64_t count) { return static_cast<double>(count); }
  Range own_leaves() const { return LeavesOfRank(rank_, model_.shape.ranks, model_.shape.leaves); }
  double Elements(double rows) const { return rows * static_cast<double>(model_.width); }
  double listed() const {
    return model_.shape.ranks == 1 ? 0 : static_cast<double>(demand_.listed_keys[rank_]);
  }
  double owned() const { return static_cast<double>(demand_.owned_keys[rank_]); }
  double sent_rows() const { return static_cast<double>(demand_.sent_rows[rank_]); }
  double early_rows() const { return static_cast<double>(demand_.early_rows[rank_]); }
  double parameters() const { return static_cast<double>(model_.graph->parameters().flat_size()); }
  double own_parameters() const {
    int64_t elements = 0;
    for (const Range& bucket : model_.shape.buckets) {
      elements += SliceOfRank(bucket, rank_, model_.shape.ranks).size();
    }
    return static_cast<double>(elements);
  }

  void Post(SimThread* thread, int signal) {
    thread->tasks.push_back({.kind = SimTask::kPost, .index = signal});
  }
  // Signals only grow, so step s waits for s + 1 times what one step posts.
  void Wait(SimThread* thread, int signal, int each_step) {
    thread->tasks.push_back(
        {.kind = SimTask::kWait, .index = signal, .count = (step_ + 1) * each_step});
  }
  void Mark(int mark, SimThread* thread) {
    thread->tasks.push_back({.kind = SimTask::kMark, .index = program_.MarkOf(step_, mark)});
  }
  void Enter(StepPart part) { Mark(static_cast<int>(part), &main()); }
  void Add(StepPart part, double seconds, int width, SimThread* thread) {
    if (step_ == 0) seconds_[static_cast<int>(part)] += seconds;
    thread->tasks.push_back({.kind = SimTask::kWork, .seconds = seconds, .width = width});
  }
  // Work of the main thread, or of all threads.
  void Work(StepPart part, double seconds, bool shared) {
    const int width = shared ? model_.threads : 1;
    Add(part, seconds / width, width, &main());
  }
  void CallNumber(size_t number, SimThread* thread) {
    const int index = step_ * static_cast<int>(calls_.size()) + static_cast<int>(number);
    thread->tasks.push_back({.kind = SimTask::kCall, .index = index});
  }
  // The main thread's calls of a phase.
  void Calls(Phase phase, StepPart part = StepPart::kUpdate) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const StepCall& call = calls_[i];
      if (call.beside || call.phase != phase) continue;
      if (phase == Phase::kScalars && call.part != part) continue;
      CallNumber(i, &main());
    }
  }

  // The seconds of a computing thread: of the first pass's forward, from there until the last
  // pass's backward, then until each bucket is complete. All threads compute together what they
  // share.
  struct Share {
    int width = 1;
    double batch_losses = 0;  // forward passes for the losses that gradients need
    double first_forward = 0;
    double before = 0;
    std::vector<double> bucket_ready;  // by bucket, from there on
    double after = 0;                  // from the last bucket on
  };

  std::vector<StepPass> PassesOf(int t) const {
    const TrainStepOptions& options = model_.options;
    const int64_t batch_rows = demand_.batch.rows;
    const Range own = own_leaves();
    const ThreadShare share_of = ShareOfThread(options, *model_.graph, own, t, model_.threads);
    const int64_t largest =
        OneLeafAPass(*model_.graph) ? 1 : PassLeavesOf(options.leaves, batch_rows);
    if (model_.gpus) {
      const Range rows = {RowsOfLeaf(own.begin, options.leaves, batch_rows).begin,
                          RowsOfLeaf(own.end - 1, options.leaves, batch_rows).end};
      return {{.node = {own.begin, own.begin + 1},
               .rows = rows,
               .node_rows = rows.size(),
               .first_leaf = own.begin,
               .first_of_node = true,
               .last_of_node = true,
               .last_node = true}};
    }
    return PassesOfThread(share_of.leaves, options.leaves, batch_rows, largest,
                          TrainingPassRows(options, *model_.graph));
  }

  void MeasurePasses(int t) {
    const int64_t batch_rows = demand_.batch.rows;
    const std::vector<StepPass> passes = PassesOf(t);
    Share share;
    share.bucket_ready.assign(buckets_, 0);
    const double width = static_cast<double>(model_.width);
    const double ids_a_row =
        demand_.rows[rank_] == 0
            ? 0
            : static_cast<double>(asked().occurrences) / static_cast<double>(demand_.rows[rank_]);
    for (const StepPass& pass : passes) {
      int64_t padded = 0, leaves = 0;
      for (int64_t leaf = pass.node.begin; leaf < pass.node.end; ++leaf) {
        const int64_t rows = pass.node.size() == 1
                                 ? pass.rows.size()
                                 : RowsOfLeaf(leaf, model_.shape.leaves, batch_rows).size();
        padded += (rows + kPanelRows - 1) / kPanelRows * kPanelRows;
        leaves += rows > 0 ? 1 : 0;
      }
      const auto rows = static_cast<double>(pass.rows.size());
      const PassTimes times = work_.Pass(padded, leaves);
      const double around = work_.PoolBags(rows * ids_a_row * width);
      const double forward = times.forward + around / 2;
      share.before += work_.Loss(rows);
      if (model_.shape.batch_losses > 0) share.batch_losses += forward + work_.Loss(rows);
      // The first pass keeps its values.
      if (&pass != &passes.front()) {
        share.before += forward;
      } else if (model_.shape.batch_losses == 0) {
        share.first_forward = forward;
      }
      if (pass.last_of_node && pass.last_node) {
        share.bucket_ready = times.bucket_ready;
        share.after = times.backward - times.bucket_ready[0] + around / 2;
      } else {
        share.before += times.backward + around / 2;
      }
    }
    // Nodes that are left are added in memory, about one for each two passes.
    const double merges = std::max(0.0, static_cast<double>(passes.size()) / 2 - 1);
    share.before += work_.Fold(2 * merges * parameters());
    if (SharesLeaves(model_.graph->needs_whole_leaf(), own_leaves(), model_.threads)) {
      share.width = t == 0 ? model_.threads : 1;
    }
    const double scale = work_.compute_scale(static_cast<int64_t>(passes.size())) / share.width;
    share.batch_losses *= scale;
    share.first_forward *= scale;
    share.before *= scale;
    share.after *= scale;
    for (double& seconds : share.bucket_ready) seconds *= scale;
    shares_.push_back(std::move(share));
  }

  void Compute() {
    const int begun = buckets_;
    const int done = buckets_ + 1;
    const int communicated = 2 * buckets_ + 4;
    if (model_.shape.batch_losses > 0) SumBatchLosses();
    Post(&main(), begun);
    for (int t = 0; t < model_.threads; ++t) {
      SimThread* const thread = &threads_[t];
      if (t > 0) Wait(thread, begun, 1);
      const Share& share = shares_[t];
      ForwardFirst(share, t);
      Add(StepPart::kCompute, share.before, share.width, thread);
      double at = 0;
      for (int b = buckets_ - 1; b >= 0; --b) {
        Add(StepPart::kCompute, share.bucket_ready[b] - at, share.width, thread);
        at = share.bucket_ready[b];
        Post(thread, b);
      }
      Add(StepPart::kCompute, share.after, share.width, thread);
      if (t > 0) Post(thread, done);
    }
    if (model_.shape.overlap) {
      SimThread* const thread = &worker();
      Wait(thread, begun, 1);
      for (int b = 0; model_.shape.late_weights && b < buckets_; ++b) {
        BesideCalls(Phase::kDenseGather, b);
        Post(thread, ThereSignal(b));
      }
      Add(StepPart::kCompute, work_.UniqueIds(Asked(asked().occurrences)), 1, thread);
      BesideCalls(Phase::kIdExchange);
      Add(StepPart::kCompute, work_.OwnedKeys(listed()), 1, thread);
      BesideCalls(Phase::kScalars);
      if (!demand_.batch.routes.early.empty()) LookupEarly(thread);
      for (const int bucket : ReduceOrder(buckets_, true)) {
        Wait(thread, bucket, model_.threads);
        ReduceBucket(StepPart::kCompute, bucket, thread);
      }
      Post(thread, communicated);
    }
    if (model_.threads > 1) Wait(&main(), done, model_.threads - 1);
    if (model_.shape.ranks > 1) SumGradients(StepPart::kCompute);
    Mark(StepProgram::kComputed, &main());
    if (model_.shape.overlap) Wait(&main(), communicated, 1);
  }

  void SumGradients(StepPart part) {
    Work(part, work_.SumGradients(Elements(Asked(asked().occurrences))), true);
  }

  int ThereSignal(int bucket) const { return buckets_ + 4 + bucket; }

  // The first forward pass. Late weights are repacked where it needs them: behind those layers
  // whose backward pass follows the bucket's.
  void ForwardFirst(const Share& share, int t) {
    SimThread* const thread = &threads_[t];
    double at = 0;
    for (int b = 0; model_.shape.late_weights && b < buckets_; ++b) {
      const double all = share.bucket_ready[0];
      const double layers_before = all > 0 ? 1 - share.bucket_ready[b] / all : 0;
      const double needed = share.first_forward * layers_before;
      Add(StepPart::kCompute, needed - at, share.width, thread);
      at = needed;
      if (t == 0) Mark(StepProgram::kWaits + 2 * b, thread);
      Wait(thread, ThereSignal(b), 1);
      if (t == 0) Mark(StepProgram::kWaits + 2 * b + 1, thread);
      const auto elements = static_cast<double>(model_.shape.buckets[b].size());
      Add(StepPart::kCompute, work_.Repack(elements) / model_.threads, 1, thread);
    }
    Add(StepPart::kCompute, share.first_forward - at, share.width, thread);
  }

  // The keys of two batches are compared, then the early ones found.
  void LookupEarly(SimThread* thread) {
    const double found = early_rows() / static_cast<double>(std::max<int64_t>(1, model_.width));
    Add(StepPart::kCompute,
        work_.OwnedKeys(2 * owned()) + work_.FindRows(found) + work_.CopyRows(early_rows()), 1,
        thread);
    BesideCalls(Phase::kEarlyRows);
  }

  void SumBatchLosses() {
    const int begun = buckets_ + 2;
    const int done = buckets_ + 3;
    Post(&main(), begun);
    for (int t = 0; t < model_.threads; ++t) {
      SimThread* const thread = &threads_[t];
      if (t > 0) Wait(thread, begun, 1);
      Add(StepPart::kCompute, shares_[t].batch_losses, shares_[t].width, thread);
      if (t > 0) Post(thread, done);
    }
    if (model_.threads > 1) Wait(&main(), done, model_.threads - 1);
    Calls(Phase::kScalars, StepPart::kCompute);
  }

  void BesideCalls(Phase phase, int bucket = -1) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const StepCall& call = calls_[i];
      if (call.beside && call.phase == phase && call.bucket == bucket) CallNumber(i, &worker());
    }
  }

  // Threads' nodes to the rank's, then the exchange, then all ranks' nodes to the slice.
  void ReduceBucket(StepPart part, int bucket, SimThread* thread) {
    const Range& range = model_.shape.buckets[bucket];
    const auto elements = static_cast<double>(range.size());
    const double nodes = static_cast<double>(nodes_.OfRank(rank_));
    const bool packs = nodes > 1 || model_.shape.hosts != nullptr;
    double before = model_.threads > 1 ? work_.Fold(model_.threads * elements) : 0;
    if (packs) before += work_.Copy(nodes * elements * model_.shape.element_bytes);
    Add(part, before, 1, thread);
    const std::vector<double> summed = SummedBehindCalls(range);
    size_t call = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].phase != Phase::kDenseReduce || calls_[i].bucket != bucket) continue;
      CallNumber(i, thread);
      Add(part, work_.Fold(summed[call++]), 1, thread);
    }
    if (call == 0) Add(part, work_.Fold(summed.back()), 1, thread);
  }

  // The elements that the rank reads for sums of a bucket behind each of its calls.
  std::vector<double> SummedBehindCalls(const Range& bucket) const {
    std::vector<double> summed;
    const bool by_host = model_.shape.hosts != nullptr;
    if (by_host) summed.push_back(gathered_elements(bucket));
    const auto slice = static_cast<double>(SliceOfRank(bucket, rank_, model_.shape.ranks).size());
    summed.push_back(slice * (by_host ? host_nodes() : static_cast<double>(nodes_.leaves.size())));
    return summed;
  }

  // By host: elements of a bucket's gradients that the rank sums for owners, and nodes of all
  // hosts.
  double gathered_elements(const Range& bucket) const {
    HostExchange exchange;
    exchange.SizeReduce(bucket, *model_.shape.hosts, nodes_, host_nodes_, rank_, 1);
    return static_cast<double>(std::accumulate(exchange.within.receive.begin(),
                                               exchange.within.receive.end(), int64_t{0}));
  }
  double host_nodes() const {
    size_t nodes = 0;
    for (const auto& leaves : host_nodes_.leaves) nodes += leaves.size();
    return static_cast<double>(nodes);
  }

  const StepProgram& program_;
  const StepModel& model_;
  const WorkTimes& work_;
  const JobDemand& demand_;
  const int rank_;
  const std::vector<StepCall>& calls_;  // of rank 0, whose bytes are not read
  const int buckets_;
  const BatchNodes nodes_;
  const HostNodes host_nodes_;  // none unless vectors go by host
  int step_ = 0;
  std::vector<SimThread> threads_;
  std::vector<Share> shares_;  // by computing thread
  std::array<double, kStepParts> seconds_{};
};

}  // namespace

StepProgram MakeStepProgram(const StepModel& model, const JobDemand& demand, int steps) {
  StepProgram program;
  program.buckets = static_cast<int>(model.shape.buckets.size());
  const int ranks = model.shape.ranks;
  SimJob& job = program.job;
  for (int r = 0; r < ranks; ++r) {
    std::vector<StepCall> calls =
        CallsOfStep(model.shape, demand.batch, &demand.batch, /*routed=*/model.shape.overlap,
                    /*settled=*/false, r);
    job.calls.resize(calls.size());
    for (size_t c = 0; c < calls.size(); ++c) {
      const Sent sent = calls[c].sent(r, ranks);
      program.all_sent += sent;
      program.between_hosts += calls[c].sent(
          r, ranks, [&](int to) { return to / model.ranks_per_host != r / model.ranks_per_host; });
      if (calls[c].kind == CallKind::kAllReduceSum) {
        job.calls[c].bytes = calls[c].send[0];
      } else {
        job.calls[c].send.emplace_back(calls[c].send);
      }
    }
    if (r > 0) continue;
    program.rank0_sent = program.all_sent;
    program.calls = std::move(calls);
  }
  job.ranks = ranks;
  job.ranks_per_host = model.ranks_per_host;
  job.signals = RankWriter::Signals(program.buckets);
  job.marks = program.MarkOf(steps, 0);
  job.repeats = steps;
  for (int r = 0; r < ranks; ++r) {
    RankWriter writer(model, demand, r, program);
    for (int step = 0; step < steps; ++step) writer.WriteStep(step);
    program.work.push_back(writer.work());
    for (SimThread& thread : writer.TakeThreads()) job.threads.push_back(std::move(thread));
  }
  return program;
}

}  // namespace elastor
