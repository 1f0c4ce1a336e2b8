// Cost of the embedding part per sample on one rank. Defaults: the paper's Criteo shape, 26 fields
// of 77,000 ids drawn from a Zipf law, width 20, batches of 4,096, one thread. Prints name=value
// lines; times are medians over batches, in microseconds a sample: the thread's CPU time, or with
// several threads or rows in files wall time. Also prints the bandwidth of STREAM's triad, by the
// same clock, and the different rows of a batch, a sample.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "embedding/key_slots.h"
#include "embedding/key_space.h"
#include "embedding/row_tier.h"
#include "embedding/sharded_embedding.h"
#include "gflags/gflags.h"

DEFINE_int64(tables, 26, "categorical fields, each with a table of its own");
DEFINE_int64(rows, 77'000, "rows of each table");
DEFINE_int64(width, 20, "elements of a row");
DEFINE_int64(pooling, 1, "ids of a bag, which are added up");
DEFINE_string(optimizer, "sgd,adagrad,row_wise_adagrad,lazy_adam,dense_adam",
              "those measured; none: finding keys alone");
DEFINE_double(l2, 0, "lambda of L2");
DEFINE_double(zipf_exponent, 1.05, "id i has weight 1 / (i + 1)^exponent; 0: all alike");
DEFINE_int64(batch_size, 4096, "samples in a batch");
DEFINE_int64(leaves, 16, "virtual shards");
DEFINE_int64(batches, 48, "batches measured for each optimizer");
DEFINE_int64(different_batches, 16, "batches in memory, taken in turn");
DEFINE_int32(threads, 1, "computing threads");
DEFINE_bool(keyed, false, "tables find their rows by 64-bit keys; also times the finding alone");
DEFINE_bool(fill, false, "first makes all rows, the frequent ones first");
DEFINE_int64(fill_rows, 4096, "rows of each table in a batch that makes them");
DEFINE_int64(evict_to, 0,
             "with keyed and fill: rows of each table that an LRU pass leaves; 0: none");
DEFINE_bool(sorted, false, "ids of a table are in the order of their frequency");
DEFINE_string(tier_path, "", "folder in which rows lie; empty: they are in memory");
DEFINE_int64(tier_bytes, 0, "bytes of these rows in memory");
DEFINE_double(dense_us, 0, "microseconds a sample that a step computes beside");

namespace elastor {
namespace {

double Microseconds() {
  timespec now;
  const bool alone = FLAGS_threads == 1 && FLAGS_tier_path.empty();
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// The best of some passes a = b + 3 c over arrays beyond all caches, on one thread; bytes as STREAM
// counts them, which are those of the arrays once.
double TriadGbPerS() {
  constexpr int64_t kElements = int64_t{1} << 25;
  std::vector<float> a(kElements), b(kElements, 1), c(kElements, 2);
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const double start = Microseconds();
    for (int64_t i = 0; i < kElements; ++i) a[i] = b[i] + 3 * c[i];
    const double bytes = 3.0 * kElements * sizeof(float);
    best = std::max(best, bytes / ((Microseconds() - start) * 1e3));
    CHECK_EQ(a[kElements - 1 - pass], 7);
  }
  return best;
}

// The mean over batches of their different rows, a sample.
double UniqueRows(const std::vector<SparseBatch>& data) {
  int64_t rows = 0;
  for (const SparseBatch& batch : data) {
    std::vector<std::pair<int64_t, int64_t>> ids;  // table, id
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      ids.emplace_back(i / FLAGS_pooling % FLAGS_tables, batch.ids[i]);
    }
    std::sort(ids.begin(), ids.end());
    rows += std::unique(ids.begin(), ids.end()) - ids.begin();
  }
  return static_cast<double>(rows) / static_cast<double>(data.size() * FLAGS_batch_size);
}

// Times of every phase, one a batch.
class Times {
 public:
  template <typename Work>
  void Measure(const std::string& phase, const Work& work) {
    const double start = Microseconds();
    work();
    last_[phase] = Microseconds() - start;
    times_[phase].push_back(last_[phase] / static_cast<double>(FLAGS_batch_size));
  }

  // Microseconds of the last batch, in all.
  double Last(const std::string& phase) const { return last_.at(phase); }

  void Print(const std::string& prefix) {
    double total = 0;
    for (auto& [phase, times] : times_) {
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      const double median = times[times.size() / 2];
      total += median;
      std::printf("%s_%s_us=%.3f\n", prefix.c_str(), phase.c_str(), median);
    }
    std::printf("%s_total_us=%.3f\n", prefix.c_str(), total);
  }

 private:
  std::map<std::string, std::vector<double>> times_;
  std::map<std::string, double> last_;
};

// Keeps this thread busy, as a model would.
void Compute(double us_a_sample) {
  timespec now;
  const auto cpu = [&] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
  };
  const double end = cpu() + us_a_sample * static_cast<double>(FLAGS_batch_size);
  while (cpu() < end) continue;
}

// As a hash would spread them.
int64_t KeyOf(int64_t id) { return static_cast<int64_t>(MixKey(id + 1) * 0x9e3779b97f4a7c15); }

int64_t IdOf(int64_t id) {
  // Ids of equal frequency lie anywhere in a table: 30,011 is prime.
  const int64_t spread = FLAGS_sorted || id >= FLAGS_rows ? id : id * 30'011 % FLAGS_rows;
  return FLAGS_keyed ? KeyOf(spread) : spread;
}

void EndBatch(SparseBatch* batch) {
  if (FLAGS_pooling != 1) {
    for (int64_t bag = 0; bag <= batch->rows * batch->fields; ++bag) {
      batch->offsets.push_back(bag * FLAGS_pooling);
    }
  }
  for (int64_t leaf = 0; leaf <= FLAGS_leaves; ++leaf) {
    batch->leaf_offsets.push_back(leaf * batch->rows / FLAGS_leaves);
  }
}

SparseBatch MakeBatch(const std::vector<double>& cumulative, uint64_t stream) {
  SparseBatch batch;
  batch.rows = FLAGS_batch_size;
  batch.fields = FLAGS_tables;
  for (int64_t i = 0; i < batch.rows * batch.fields * FLAGS_pooling; ++i) {
    const double u = UniformFromBits(Philox(stream, {static_cast<uint32_t>(i), 0, 0, 0})[0]);
    batch.ids.push_back(
        IdOf(cumulative.empty()
                 ? static_cast<int64_t>(u * static_cast<double>(FLAGS_rows))
                 : std::upper_bound(cumulative.begin(), cumulative.end(), u * cumulative.back()) -
                       cumulative.begin()));
  }
  EndBatch(&batch);
  return batch;
}

// Ids [first, first + fill_rows) of every table, below `end`.
SparseBatch MakeFilling(int64_t first, int64_t end) {
  SparseBatch batch;
  batch.rows = FLAGS_fill_rows;
  batch.fields = FLAGS_tables;
  for (int64_t i = 0; i < batch.rows * batch.fields * FLAGS_pooling; ++i) {
    const int64_t row = i / (batch.fields * FLAGS_pooling);
    batch.ids.push_back(IdOf(std::min(first + row, end - 1)));
  }
  EndBatch(&batch);
  return batch;
}

ShardedEmbedding<float>::Options MakeOptions(OptimizerKind kind, RowTier* tier) {
  ShardedEmbedding<float>::Options options;
  for (int64_t f = 0; f < FLAGS_tables; ++f) {
    options.tables.push_back({std::to_string(f), FLAGS_rows, FLAGS_width, 1e-4});
    options.tables.back().keyed = FLAGS_keyed;
    if (FLAGS_evict_to > 0) {
      options.tables.back().keeps_use = true;
      options.tables.back().rules = {.policy = RowRules::Policy::kLru,
                                     .capacity = FLAGS_rows,
                                     .evicts_when_full = true,
                                     .evict_to = FLAGS_evict_to};
    }
    options.fields.push_back({std::to_string(f), static_cast<int>(f), Pooling::kSum});
  }
  options.optimizer.rule.kind = kind;
  options.optimizer.l2 = FLAGS_l2;
  options.leaves = FLAGS_leaves;
  options.tier = tier;
  return options;
}

void Run(const std::string& name, OptimizerKind kind, const std::vector<SparseBatch>& data) {
  using Embedding = ShardedEmbedding<float>;
  std::unique_ptr<RowTier> tier;
  if (!FLAGS_tier_path.empty()) {
    auto opened = RowTier::Open({FLAGS_tier_path, FLAGS_tier_bytes});
    CHECK(opened.ok()) << opened.status().message();
    tier = std::move(opened).value();
  }
  const Embedding::Options options = MakeOptions(kind, tier.get());
  const std::vector<int64_t> bytes(options.tables.size(), 1);
  StatusOr<ShardPlan> plan = ShardPlan::Make(PlanKind::kRowWise, options.tables, bytes, 1, 0);
  CHECK(plan.ok()) << plan.status().message();
  const auto communicator = MakeSelfCommunicator();
  ThreadPool pool(FLAGS_threads);
  Embedding embedding(options, &*plan, communicator.get(), &pool);
  auto routing = embedding.MakeRouting();
  auto next = embedding.MakeRouting();
  const int64_t features = embedding.output_features();
  // A thread's activations of one leaf, as in a training step.
  const int64_t most_rows = std::max(FLAGS_batch_size, FLAGS_fill_rows);
  const int64_t leaf_rows = (most_rows + FLAGS_leaves - 1) / FLAGS_leaves;
  const int64_t leaf_elements = PanelElements(leaf_rows, features);
  std::vector<float> memory(FLAGS_threads * leaf_elements, 0.01f);
  Times times;
  int64_t step = 0;
  // The first pass makes most rows; it is not measured.
  const auto train = [&](const SparseBatch& batch, const SparseBatch& then, Times* times) {
    times->Measure("2_lookup", [&] {
      CHECK(embedding.Lookup(Embedding::Purpose::kTrain, routing.get()).ok());
    });
    times->Measure("1_unique", [&] {
      CHECK(embedding.RouteIds(then, next.get()).ok());
      if (embedding.has_tier()) embedding.FetchAhead(next.get());
    });
    const auto for_leaves = [&](const auto& work) {
      pool.ParallelFor(FLAGS_leaves, 1, [&](int thread, int64_t first, int64_t last) {
        for (int64_t leaf = first; leaf < last; ++leaf) {
          const int64_t begin = batch.leaf_offsets[leaf];
          const int64_t rows = batch.leaf_offsets[leaf + 1] - begin;
          work(begin, Panels<float>{memory.data() + thread * leaf_elements, rows, features,
                                    PanelStride(features)});
        }
      });
    };
    times->Measure("3_expand", [&] {
      for_leaves([&](int64_t row, Panels<float> e) { embedding.ReturnRows(*routing, row, e); });
    });
    times->Measure("4_take", [&] {
      for_leaves(
          [&](int64_t row, Panels<float> e) { embedding.TakeGradients(row, e, routing.get()); });
    });
    if (FLAGS_dense_us > 0) times->Measure("4_dense", [] { Compute(FLAGS_dense_us); });
    ExactSum norm, weights;
    times->Measure("5_combine", [&] {
      CHECK(embedding.RouteGradients(batch.rows, routing.get(), &norm, &weights).ok());
    });
    times->Measure("6_update", [&] { embedding.Update(1, 1e-3, ++step, routing.get()); });
    if (FLAGS_keyed) {
      times->Measure("7_rules",
                     [&] { CHECK(embedding.ApplyRules(step, embedding.CountKeyedRows()).ok()); });
    }
    std::swap(routing, next);
  };
  const auto pass = [&](int64_t batches, Times* times) {
    CHECK(embedding.RouteIds(data[0], routing.get()).ok());
    for (int64_t b = 0; b < batches; ++b) {
      train(data[b % data.size()], data[(b + 1) % data.size()], times);
    }
  };
  Times warm_up;
  if (FLAGS_fill) {
    SparseBatch batch = MakeFilling(0, FLAGS_rows);
    CHECK(embedding.RouteIds(batch, routing.get()).ok());
    for (int64_t first = 0; first < FLAGS_rows; first += FLAGS_fill_rows) {
      SparseBatch then = MakeFilling(first + FLAGS_fill_rows, FLAGS_rows);
      train(batch, then, &warm_up);
      batch = std::move(then);
    }
  }
  pass(static_cast<int64_t>(data.size()), &warm_up);
  pass(FLAGS_batches, &times);
  times.Print(name);
  if (FLAGS_evict_to == 0) return;
  // Tables that are full meet new keys.
  const SparseBatch batch = MakeFilling(FLAGS_rows, FLAGS_rows + FLAGS_fill_rows);
  CHECK(embedding.RouteIds(batch, routing.get()).ok());
  train(batch, data[0], &warm_up);
  int64_t evicted = 0;
  for (const auto& table : embedding.keyed_tables()) evicted += table.evicted;
  std::printf("pass_evicted_rows=%ld\npass_s=%.3f\n", evicted, warm_up.Last("7_rules") * 1e-6);
}

// Finds keys in random order among all of one table's.
void FindKeys() {
  std::vector<int32_t> partitions(kPartitions);
  std::iota(partitions.begin(), partitions.end(), 0);
  KeySlots slots(StoredPartitions(partitions), FLAGS_rows, "keys");
  for (int64_t id = 0; id < FLAGS_rows; ++id) slots.Insert(KeyOf(id));
  constexpr int64_t kKeys = 1 << 22;
  constexpr int kRounds = 5;
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < kKeys; ++i) {
      const PhiloxBlock words = Philox(round, {static_cast<uint32_t>(i), 0, 0, 0});
      keys.push_back(
          KeyOf(static_cast<int64_t>(UniformFromBits(words[0]) * static_cast<double>(FLAGS_rows))));
    }
    std::vector<uint32_t> found(keys.size(), 0);
    const double start = Microseconds();
    slots.Find(keys, found.data());
    rates.push_back(static_cast<double>(kKeys) / (Microseconds() - start));
    for (size_t i = 0; i < keys.size(); ++i) CHECK_EQ(slots.KeyAt(found[i]), keys[i]);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("find_million_keys_per_s=%.1f\nfind_index_bytes_a_row=%.1f\n", rates[kRounds / 2],
              static_cast<double>(slots.memory_bytes()) / static_cast<double>(FLAGS_rows));
}

void Main() {
  if (FLAGS_keyed) FindKeys();
  std::vector<double> cumulative;
  double sum = 0;
  for (int64_t id = 0; FLAGS_zipf_exponent > 0 && id < FLAGS_rows; ++id) {
    sum += std::pow(static_cast<double>(id + 1), -FLAGS_zipf_exponent);
    cumulative.push_back(sum);
  }
  std::vector<SparseBatch> data;
  for (int64_t b = 0; b < FLAGS_different_batches; ++b) data.push_back(MakeBatch(cumulative, b));
  std::printf("triad_gb_per_s=%.2f\n", TriadGbPerS());
  std::printf("unique_rows=%.4f\n", UniqueRows(data));
  const std::pair<std::string, OptimizerKind> optimizers[] = {
      {"sgd", OptimizerKind::kSgd},
      {"adagrad", OptimizerKind::kAdagrad},
      {"row_wise_adagrad", OptimizerKind::kRowWiseAdagrad},
      {"lazy_adam", OptimizerKind::kLazyAdam},
      {"dense_adam", OptimizerKind::kDenseAdam}};
  for (const auto& [name, kind] : optimizers) {
    if (("," + FLAGS_optimizer + ",").find("," + name + ",") != std::string::npos) {
      Run(name, kind, data);
    }
  }
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::StartLog(argv[0]);
  elastor::Main();
}
