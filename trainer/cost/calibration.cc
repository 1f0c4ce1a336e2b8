#include "trainer/cost/calibration.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collective/leaf_tree.h"
#include "collective/rank_hosts.h"
#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/clock.h"
#include "core/base/precision.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/process/build_info.h"
#include "embedding/embedding_layout.h"
#include "embedding/key_index.h"
#include "embedding/row_math.h"
#include "embedding/sharded_embedding.h"
#include "embedding/unique_ids.h"
#include "trainer/cost/batch_demand.h"
#include "trainer/cost/machine.h"
#include "trainer/cost/step_program.h"
#include "trainer/data/batch_source.h"
#include "trainer/experiment/make_options.h"
#include "trainer/step/dense_optimizer.h"
#include "trainer/step/step_calls.h"
#include "trainer/step/thread_shares.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

constexpr int kRepeats = 7;
constexpr int64_t kSweepElements = int64_t{1} << 22;  // 16 MiB, beyond most caches of a core

// The lower quartile: what interrupts a measurement makes it longer.
double Quantile(double share, std::vector<double> values) {
  const auto place = values.begin() + static_cast<int64_t>(share * values.size());
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double Quartile(std::vector<double> values) { return Quantile(.25, std::move(values)); }

double SecondsOf(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return SecondsSince(start);
}

double QuartileSeconds(const std::function<void()>& work) {
  work();  // the first time touches memory
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) seconds.push_back(SecondsOf(work));
  return Quartile(std::move(seconds));
}

Piece PieceOf(double fixed, double each) {
  Piece piece;
  piece.set_fixed_s(fixed);
  piece.set_each_s(each);
  return piece;
}

// The line through two measured amounts; without a negative part.
Piece LineThrough(double small, double small_s, double large, double large_s) {
  const double each = std::max(0.0, large > small ? (large_s - small_s) / (large - small) : 0);
  if (each == 0) return PieceOf(0, large > 0 ? large_s / large : 0);
  return PieceOf(std::max(0.0, small_s - each * small), each);
}

// Takes gradients and forgets them.
class Forget final : public GradientSink<float> {
 public:
  explicit Forget(const ParameterLayout& layout) : layout_(layout), flat_(layout.flat_size()) {}
  Target Open(int parameter) override {
    return {flat_.data() + layout_[parameter].offset, Store::kOverwrite};
  }
  void Close(int) override {}

 private:
  const ParameterLayout& layout_;
  std::vector<float> flat_;
};

void Fill(Panels<float> view) {
  for (int64_t row = 0; row < view.rows; ++row) {
    for (int64_t f = 0; f < view.features; ++f) {
      view.At(row, f) = 0.01f * static_cast<float>((row * 7 + f * 13) % 19 - 9);
    }
  }
}

// Passes of the model's graph on one thread.
class Passes {
 public:
  Passes(const Experiment& experiment, const ResolvedModel& model, const DatasetInfo& info)
      : options_(MakeTrainStepOptions(experiment, info)),
        model_(model),
        executor_(model.graph, CpuRewrites::kAll, options_.precision),
        weights_(model.graph.parameters().flat_size()),
        largest_(TrainingPassRows(options_, model.graph)),
        numeric_(largest_ * std::max<int64_t>(1, model.graph.features().numeric_fields)) {
    model.graph.parameters().Initialize(1, weights_.data());
    executor_.Prepare(weights_.data());
    for (int64_t row = 0; row < largest_; ++row) {
      for (const SequenceShape& sequence : model.graph.features().sequences) {
        if (!sequence.pooled) lengths_.push_back(static_cast<int32_t>(sequence.positions));
      }
    }
  }

  const Graph& graph() const { return executor_.graph(); }
  int64_t largest() const { return largest_; }
  float* weights() { return weights_.data(); }
  void Repack() { executor_.Prepare(weights_.data()); }
  const TrainStepOptions& options() const { return options_; }

  struct Seconds {
    std::vector<double> forward, backward;  // by node
  };
  // What one thread needs for a pass.
  struct Memory {
    explicit Memory(const Passes& passes)
        : workspace(passes.executor_.workspace_plan(), passes.largest_),
          sink(passes.graph().parameters()) {}
    Workspace<float> workspace;
    Forget sink;
  };
  Seconds Run(const PassLeaves& leaves, Memory* memory) const {
    Pass<float> pass;
    pass.workspace = &memory->workspace;
    pass.sink = &memory->sink;
    pass.leaves = leaves;
    pass.training = true;
    pass.numeric = numeric_.data();
    pass.lengths = lengths_.data();
    pass.seed = 1;
    Fill(executor_.Embeddings(pass));
    Seconds seconds;
    seconds.forward.assign(graph().size(), 0);
    seconds.backward.assign(graph().size(), 0);
    executor_.Forward(pass, &seconds.forward);
    Fill(executor_.LogitGradients(pass));
    executor_.Backward(pass, &seconds.backward);
    return seconds;
  }
  // Lower quartiles of repeated passes.
  Seconds Measure(const PassLeaves& leaves) const {
    Memory memory(*this);
    Run(leaves, &memory);
    std::vector<Seconds> all;
    for (int i = 0; i < 2 * kRepeats + 1; ++i) all.push_back(Run(leaves, &memory));
    Seconds quartile = all[0];
    const auto of = [&](size_t node, std::vector<double> Seconds::*direction) {
      std::vector<double> values;
      for (const Seconds& one : all) values.push_back((one.*direction)[node]);
      return Quartile(std::move(values));
    };
    for (size_t i = 0; i < quartile.forward.size(); ++i) {
      quartile.forward[i] = of(i, &Seconds::forward);
      quartile.backward[i] = of(i, &Seconds::backward);
    }
    return quartile;
  }

 private:
  friend struct Memory;
  const TrainStepOptions options_;
  const ResolvedModel& model_;
  CpuExecutor<float> executor_;
  std::vector<float> weights_;
  const int64_t largest_;
  std::vector<float> numeric_;
  std::vector<int32_t> lengths_;
};

PassLeaves FullLeaves(int64_t leaves, int64_t rows_each) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= leaves; ++i) offsets.push_back(i * rows_each);
  return PassLeaves(0, offsets);
}

void SetProductRate(Precision precision, double rate, Machine* machine) {
  if (precision == Precision::kBFloat16) {
    machine->set_bfloat16_multiply_adds_per_s(rate);
  } else {
    machine->set_multiply_adds_per_s(rate);  // the CPU has no TF32
  }
}

// The kernels, and the rate of products.
void MeasureKernels(const Passes& passes, Machine* machine) {
  const Graph& graph = passes.graph();
  std::vector<int64_t> rows;
  for (const int64_t count : {kPanelRows, 4 * kPanelRows, 16 * kPanelRows, kPassRows}) {
    if (count <= passes.largest()) rows.push_back(count);
  }
  if (rows.empty()) rows.push_back(passes.largest());
  std::map<std::string, std::pair<int, Kernel>> kernels;  // and how many nodes have it
  const int64_t leaves = std::min(kMaxPassLeaves, passes.largest() / kPanelRows);
  const bool several = !OneLeafAPass(graph) && leaves > 1;
  Passes::Seconds of_leaves;
  if (several) of_leaves = passes.Measure(FullLeaves(leaves, kPanelRows));
  for (const int64_t count : rows) {
    const Passes::Seconds seconds = passes.Measure(PassLeaves(count));
    for (int i = 0; i < graph.size(); ++i) {
      auto& [nodes, kernel] = kernels[KernelName(graph, i)];
      if (count == rows.front()) ++nodes;
      const int point = static_cast<int>(std::ranges::find(rows, count) - rows.begin());
      if (kernel.rows_size() == point) {
        kernel.add_rows(count);
        kernel.add_forward_s(0);
        kernel.add_backward_s(0);
      }
      kernel.set_forward_s(point, kernel.forward_s(point) + seconds.forward[i]);
      kernel.set_backward_s(point, kernel.backward_s(point) + seconds.backward[i]);
      if (several && count == leaves * kPanelRows) {
        kernel.set_leaf_s(kernel.leaf_s() +
                          std::max(0.0, of_leaves.backward[i] - seconds.backward[i]) /
                              static_cast<double>(leaves - 1));
      }
    }
  }
  double sum = 0;
  for (auto& [name, of] : kernels) {
    auto& [nodes, kernel] = of;
    kernel.set_op(name);
    for (int i = 0; i < kernel.rows_size(); ++i) {
      if (i == kernel.rows_size() - 1) sum += kernel.forward_s(i) + kernel.backward_s(i);
      kernel.set_forward_s(i, kernel.forward_s(i) / nodes);
      kernel.set_backward_s(i, kernel.backward_s(i) / nodes);
    }
    kernel.set_leaf_s(kernel.leaf_s() / nodes);
    *machine->add_kernel() = kernel;
  }
  const auto products = 3 * static_cast<double>(graph.multiply_adds() * rows.back());
  SetProductRate(passes.options().precision, std::max(1.0, products / sum), machine);
}

// How much slower a pass is when all units compute one.
double BusySlowdown(const Passes& passes, int units) {
  ThreadPool pool(units);
  std::vector<std::unique_ptr<Passes::Memory>> memory(units);
  pool.Run([&](int t) { memory[t] = std::make_unique<Passes::Memory>(passes); });
  const PassLeaves leaves(passes.largest());
  const double alone = QuartileSeconds([&] { passes.Run(leaves, memory[0].get()); });
  const double together =
      QuartileSeconds([&] { pool.Run([&](int t) { passes.Run(leaves, memory[t].get()); }); });
  return std::clamp(together / alone, 1.0, static_cast<double>(units));  // noise may say more
}

void MeasureMemory(int64_t width, Machine* machine) {
  Pieces* const pieces = machine->mutable_pieces();
  std::vector<float> from(kSweepElements, 1), to(kSweepElements, 1);
  const auto bytes = static_cast<double>(kSweepElements * sizeof(float));
  const double copy =
      QuartileSeconds([&] { std::memcpy(to.data(), from.data(), from.size() * 4); });
  *pieces->mutable_copy() = PieceOf(0, copy / bytes);
  machine->set_memory_bytes_per_s(2 * bytes / copy);

  const int64_t rows = kSweepElements / width;
  std::vector<int64_t> order(std::min<int64_t>(rows, int64_t{1} << 15));
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int64_t>(i * 2654435761u % static_cast<uint64_t>(rows));
  }
  const double gather = QuartileSeconds([&] {
    float* next = to.data();
    for (size_t i = 0; i < order.size(); ++i) {
      PrefetchRow(from.data() + order[std::min(i + 8, order.size() - 1)] * width, width);
      next = std::copy_n(from.data() + order[i] * width, width, next);
    }
  });
  const auto gathered = static_cast<double>(order.size()) * static_cast<double>(width);
  *pieces->mutable_copy_rows() = PieceOf(0, gather / gathered);
  machine->set_gather_bytes_per_s(gathered * sizeof(float) / gather);

  constexpr int kNodes = 4;
  const int64_t length = kSweepElements / kNodes;
  const int64_t leaves[kNodes] = {0, 1, 2, 3};
  const float* nodes[kNodes];
  for (int i = 0; i < kNodes; ++i) nodes[i] = from.data() + i * length;
  const double fold = QuartileSeconds([&] { FoldNodes<float>(leaves, nodes, length, to.data()); });
  *pieces->mutable_fold() = PieceOf(0, fold / static_cast<double>(kSweepElements));
}

void MeasureDense(Passes* passes, Machine* machine) {
  ThreadPool pool(1);
  const ParameterLayout& layout = passes->graph().parameters();
  DenseOptimizer<float> optimizer(passes->options().dense, layout,
                                  {layout.buckets().begin(), layout.buckets().end()}, &pool);
  const auto parameters = static_cast<double>(std::max<int64_t>(1, layout.flat_size()));
  int64_t step = 0;
  const double update =
      QuartileSeconds([&] { optimizer.Update(1, 1e-6, ++step, passes->weights()); });
  Pieces* const pieces = machine->mutable_pieces();
  *pieces->mutable_update_dense() = PieceOf(0, update / parameters);
  *pieces->mutable_repack() = PieceOf(0, QuartileSeconds([&] { passes->Repack(); }) / parameters);
}

// Lower quartiles of the parts of real steps of one size, and what their batches have.
struct StepMeasurement {
  std::array<double, kStepParts> seconds{};
  double ids = 0, keys = 0;  // of a batch: ids of its rows, and different ones
  double owned_keys = 0;     // seconds to number the latter
  JobDemand demand;          // of the last batch

  double operator[](StepPart part) const { return seconds[static_cast<int>(part)]; }
};

// Steps of a training run on one rank and one thread.
class RealSteps {
 public:
  // The largest batch decides the memory.
  RealSteps(const Experiment& experiment, const ResolvedModel& model, const Dataset& dataset,
            const ShardPlan* plan, const TrainStepOptions& options)
      : experiment_(experiment),
        model_(model),
        dataset_(dataset),
        plan_(*plan),
        tables_(MakeEmbeddingOptions(experiment, dataset.info()), plan, self_.get(), &pool_),
        step_(options, &model.graph, &tables_, self_.get(), &pool_) {}

  // REQUIRES: the data set has at least batch_rows training rows.
  StatusOr<StepMeasurement> Measure(int64_t batch_rows) {
    constexpr size_t kBatches = 3;
    constexpr int kRounds = 4;  // rows are made in the first
    BatchSource source(&dataset_, MakeRowOrder(experiment_),
                       {.batch_rows = batch_rows,
                        .leaves = experiment_.parallel().virtual_shards(),
                        .epochs = kBatches,
                        .sequences = model_.graph.features().sequences});
    // The last batch of an epoch may have fewer rows: it is not measured.
    std::vector<LocalBatch> batches;
    while (batches.size() < kBatches) {
      LocalBatch batch;
      ELASTOR_RETURN_IF_ERROR(source.Next(&batch));
      if (batch.sparse.rows == batch_rows) batches.push_back(std::move(batch));
    }
    std::array<std::vector<double>, kStepParts> seconds;
    for (int round = 0; round < kRounds; ++round) {
      for (const LocalBatch& batch : batches) {
        const StepTimes before = step_.times();
        ELASTOR_RETURN_IF_ERROR(step_.Run(batch, nullptr, kLearningRate, 0).status());
        for (int p = 0; round > 0 && p < kStepParts; ++p) {
          const auto part = static_cast<StepPart>(p);
          seconds[p].push_back(step_.times()[part] - before[part]);
        }
      }
    }
    StepMeasurement measured;
    for (int p = 0; p < kStepParts; ++p) measured.seconds[p] = Quartile(std::move(seconds[p]));
    return Count(batches.back().sparse, std::move(measured));
  }

 private:
  static constexpr double kLearningRate = 1e-6;

  StatusOr<StepMeasurement> Count(const SparseBatch& batch, StepMeasurement measured) const {
    const EmbeddingLayout layout(model_.tables, model_.fields);
    UniqueIds unique(&layout);
    ELASTOR_RETURN_IF_ERROR(unique.Build(batch, nullptr));
    measured.ids = static_cast<double>(unique.occurrences());
    measured.keys = static_cast<double>(unique.size());
    KeyIndex index;
    std::vector<int64_t> list(unique.size() + 1);
    std::vector<uint32_t> numbers(unique.size());
    measured.owned_keys = QuartileSeconds([&] {
      index.Reset(unique.size(), list.data());
      index.Number({unique.keys(), static_cast<size_t>(unique.size())}, numbers.data());
    });
    ELASTOR_ASSIGN_OR_RETURN(measured.demand, CountDemand(batch, /*before=*/nullptr, layout, plan_,
                                                          experiment_.parallel().virtual_shards(),
                                                          /*hosts=*/nullptr));
    return measured;
  }

  const Experiment& experiment_;
  const ResolvedModel& model_;
  const Dataset& dataset_;
  const ShardPlan& plan_;
  ThreadPool pool_{1};
  const std::unique_ptr<Communicator> self_ = MakeSelfCommunicator();
  ShardedEmbedding<float> tables_;
  TrainStep<float> step_;
};

// Seconds of the computation that the pieces so far predict for a batch.
double PredictedCompute(const Experiment& experiment, const Machine& machine, const Graph& graph,
                        const TrainStepOptions& options, const JobDemand& demand) {
  const WorkTimes work(&machine, ProductRate(machine, options.precision).value(), &graph);
  StepModel step;
  step.work = &work;
  step.graph = &graph;
  step.options = options;
  const auto buckets = graph.parameters().buckets();
  step.shape = {.leaves = options.leaves, .buckets = {buckets.begin(), buckets.end()}};
  step.width = TableWidth(experiment);
  const StepProgram program = MakeStepProgram(step, demand, /*steps=*/1);
  return program.work[0][static_cast<int>(StepPart::kCompute)];
}

// The pieces that real steps show, and how much longer these compute than their kernels.
Status MeasureSteps(const Experiment& experiment, const ResolvedModel& model,
                    const Dataset& dataset, const Graph& graph, Machine* machine) {
  ELASTOR_ASSIGN_OR_RETURN(const int64_t rows, TrainingRows(experiment, dataset.info()));
  if (rows < kPassRows) {
    return UserError(
        StrCat("data.path: ", rows, " training rows; a calibration needs at least ", kPassRows));
  }
  const int64_t large_batch = std::min(16 * kPassRows, rows);
  const int64_t small_batch = large_batch / 16;
  machine->add_source(StrCat("measured, with steps of ", small_batch, " and ", large_batch,
                             " rows of the data set"));
  ELASTOR_ASSIGN_OR_RETURN(const ShardPlan plan, MakePlan(experiment, model.tables, /*ranks=*/1));
  TrainStepOptions options = MakeTrainStepOptions(experiment, dataset.info());
  options.overlap = false;
  options.batch_rows = large_batch;
  RealSteps steps(experiment, model, dataset, &plan, options);
  ELASTOR_ASSIGN_OR_RETURN(const StepMeasurement small, steps.Measure(small_batch));
  ELASTOR_ASSIGN_OR_RETURN(const StepMeasurement large, steps.Measure(large_batch));
  Pieces* const pieces = machine->mutable_pieces();
  const auto parameters = static_cast<double>(std::max<int64_t>(1, graph.parameters().flat_size()));
  const double fold = pieces->fold().each_s() * parameters;
  *pieces->mutable_norm_dense() =
      PieceOf(0, std::max(0.0, large[StepPart::kReduce] - fold) / parameters);
  const auto width = static_cast<double>(TableWidth(experiment));
  const auto line = [&](double StepMeasurement::*amount, double scale, StepPart part) {
    return LineThrough(small.*amount * scale, small[part], large.*amount * scale, large[part]);
  };
  if (large.keys > 0) {
    *pieces->mutable_unique_ids() = line(&StepMeasurement::ids, 1, StepPart::kRouteIds);
    *pieces->mutable_owned_keys() = PieceOf(0, large.owned_keys / large.keys);
    *pieces->mutable_find_rows() = line(&StepMeasurement::keys, 1, StepPart::kLookup);
    // On one rank the norms of rows are taken while their gradients are summed.
    *pieces->mutable_sum_gradients() =
        line(&StepMeasurement::ids, width, StepPart::kRouteGradients);
    *pieces->mutable_norm_rows() = PieceOf(0, 0);
  }
  // What does not grow with the rows are the dense optimizer and the repacking.
  const Piece update = line(&StepMeasurement::keys, width, StepPart::kUpdate);
  *pieces->mutable_update_rows() = PieceOf(0, update.each_s());
  const double dense = pieces->update_dense().each_s() + pieces->repack().each_s();
  const double longer = std::max(1.0, update.fixed_s() / parameters / dense);
  pieces->mutable_update_dense()->set_each_s(pieces->update_dense().each_s() * longer);
  pieces->mutable_repack()->set_each_s(pieces->repack().each_s() * longer);
  const auto scale = [&](const StepMeasurement& measured) {
    return measured[StepPart::kCompute] /
           PredictedCompute(experiment, *machine, graph, options, measured.demand);
  };
  const double one_pass = scale(small);
  machine->set_compute_scale(scale(large));
  machine->set_one_pass_compute_scale(one_pass);
  return OkStatus();
}

// The cores that this process may use: fewer than the host's if a launcher bound it.
int OwnCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  return std::max(1, known ? CPU_COUNT(&cores) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

Status MeasureOnOneRank(const Experiment& experiment, const ResolvedModel& model,
                        const Dataset& dataset, Machine* machine) {
  SetCanonicalFloatingPoint();
  const int units = OwnCores();
  machine->set_name("measured");
  machine->set_build(BuildName());
  machine->set_measured_with(MeasuredWith(experiment));
  machine->set_units_per_host(units);
  Passes passes(experiment, model, dataset.info());
  MeasureKernels(passes, machine);
  machine->set_busy_slowdown(units > 1 ? BusySlowdown(passes, units) : 1);
  MeasureMemory(TableWidth(experiment), machine);
  MeasureDense(&passes, machine);
  return MeasureSteps(experiment, model, dataset, passes.graph(), machine);
}

// Seconds of a call in which two ranks exchange `bytes`; the others do nothing.
StatusOr<double> PairSeconds(int peer, int64_t bytes, Communicator* communicator) {
  const int rank = communicator->rank();
  const int other = rank == 0 ? peer : rank == peer ? 0 : -1;
  std::vector<int64_t> sizes(communicator->size(), 0);
  if (other >= 0) sizes[other] = bytes;
  std::vector<char> send(bytes), receive(bytes);
  const Clock::time_point start = Clock::now();
  ELASTOR_RETURN_IF_ERROR(
      communicator->AllToAllV(Phase::kSetup, send.data(), sizes, receive.data(), sizes));
  return SecondsSince(start);
}

// Fast calls with short and long messages in turn, so that both meet the same machine. Ranks beyond
// the cores take turns: most of their calls tell how long a turn is, and only the fastest tell the
// link.
StatusOr<Link> MeasureLink(int peer, Communicator* communicator) {
  constexpr int kCalls = 200;
  constexpr double kShare = .05;
  constexpr int64_t kBytes[] = {8, int64_t{1} << 20};
  std::vector<double> seconds[2];
  ELASTOR_RETURN_IF_ERROR(communicator->Barrier(Phase::kSetup));
  for (int i = 0; i < kCalls; ++i) {
    for (int size = 0; size < 2; ++size) {
      ELASTOR_ASSIGN_OR_RETURN(const double call, PairSeconds(peer, kBytes[size], communicator));
      seconds[size].push_back(call);
    }
  }
  const double small = Quantile(kShare, std::move(seconds[0]));
  const double large = Quantile(kShare, std::move(seconds[1]));
  Link link;
  link.set_latency_s(std::max(small, 1e-9));
  // No rate where a long message is not slower: Calibrate refuses it.
  if (large > small) {
    link.set_bytes_per_s(static_cast<double>(kBytes[1] - kBytes[0]) / (large - small));
  }
  return link;
}

// The links from rank 0: to the first other rank of its host, and to the first of another.
Status MeasureLinks(Communicator* communicator, Machine* machine) {
  if (communicator->size() == 1) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const RankHosts hosts, FindHosts(*communicator));
  for (int peer = 1; peer < communicator->size(); ++peer) {
    const bool same = hosts.HostOf(peer) == hosts.HostOf(0);
    if (same ? machine->has_same_host() : machine->has_other_host()) continue;
    ELASTOR_ASSIGN_OR_RETURN(const Link link, MeasureLink(peer, communicator));
    *(same ? machine->mutable_same_host() : machine->mutable_other_host()) = link;
  }
  if (!machine->has_same_host() || communicator->size() < 3) return OkStatus();
  // What each further message of a rank takes.
  constexpr int kCalls = 50;
  std::vector<int64_t> send(communicator->size()), receive(communicator->size());
  std::vector<double> seconds;
  for (int i = 0; i < kCalls; ++i) {
    const Clock::time_point start = Clock::now();
    ELASTOR_RETURN_IF_ERROR(
        communicator->AllToAll(Phase::kSetup, send.data(), receive.data(), sizeof(int64_t)));
    seconds.push_back(SecondsSince(start));
  }
  // Ranks beyond the units take turns (Simulation::TurnsOnHost).
  const auto of_host = static_cast<double>(hosts.RanksOf(hosts.HostOf(0)).size());
  const double turns = std::max(1.0, of_host / std::max(1, machine->units_per_host()));
  Link* const link = machine->mutable_same_host();
  link->set_message_s(std::max(0.0, Quartile(std::move(seconds)) / turns - link->latency_s()) /
                      (communicator->size() - 2));
  return OkStatus();
}

}  // namespace

StatusOr<Machine> Calibrate(const Experiment& experiment, const ResolvedModel& model,
                            const Dataset& dataset, Communicator* communicator) {
  Machine machine;
  Status status;
  if (communicator->rank() == 0) {
    status = MeasureOnOneRank(experiment, model, dataset, &machine);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  ELASTOR_RETURN_IF_ERROR(MeasureLinks(communicator, &machine));
  const auto lacks_rate = [](bool has, const Link& link) { return has && link.bytes_per_s() == 0; };
  // Rank 0's links are the machine's. A rank with no part in a message has measured nothing.
  if (communicator->rank() == 0 && (lacks_rate(machine.has_same_host(), machine.same_host()) ||
                                    lacks_rate(machine.has_other_host(), machine.other_host()))) {
    status = UserError(
        "a message of a mebibyte took no longer than one of 8 bytes: other work disturbs the "
        "calibration; calibrate again on a quiet machine");
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  std::string text = machine.SerializeAsString();
  ELASTOR_RETURN_IF_ERROR(BroadcastText(*communicator, Phase::kSetup, 0, &text));
  machine.ParseFromString(text);
  return machine;
}

}  // namespace elastor
