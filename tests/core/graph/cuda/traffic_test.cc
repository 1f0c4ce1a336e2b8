#include "core/cuda/emulation/traffic.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "core/cuda/emulation/memory.h"
#include "core/cuda/emulation/schedule.h"
#include "tests/core/graph/cuda/device_run.h"
#include "tests/core/models/test_model.h"

namespace elastor::cuda {
namespace {

// RankElastor with the paper's Criteo settings.
elastor::Graph CriteoModel() {
  return MakeTestModel({.numeric_fields = 13, .categorical_fields = 26, .embedding_width = 20},
                       "rank_elastor { tokens: 15 token_width: 26 blocks: 2 "
                       "feed_forward { kind: GATED activation: GELU expansion: 3 } }")
      .graph();
}

// So many that one block computes a token of a leaf.
constexpr int kLeaves = 8;
constexpr int kRows = 16;  // of a leaf

DeviceModelOptions Options(Precision precision, int64_t rows, bool fused) {
  return {.precision = precision,
          .canonical_rows = rows,
          .canonical_leaves = kLeaves,
          .fused_network = fused};
}

// Of Forward and Backward.
template <typename A>
emulation::Traffic StepTraffic(Precision precision, int32_t leaf_rows, bool fused) {
  const elastor::Graph graph = CriteoModel();
  const LeafBatch batch = MakeLeafBatch(graph, std::vector<int32_t>(kLeaves, leaf_rows), leaf_rows);
  DeviceRun<A> run(graph, MakeWeights(graph.parameters()), batch, 0, kLeaves,
                   Options(precision, kLeaves * leaf_rows, fused));
  run.Enqueue(/*training=*/true);
  run.stream().Synchronize();
  const emulation::TrafficCount count;
  run.executor().Forward(run.pass());
  run.gradients().Begin(nullptr);
  run.executor().Backward(run.pass(), &run.gradients());
  run.stream().Synchronize();
  return count.traffic();
}

// Of the executor.
template <typename A>
int64_t MemoryBytes(Precision precision, int64_t leaf_rows, bool fused) {
  Stream stream;
  const int64_t before = emulation::FreeDeviceBytes();
  DeviceExecutor<A> executor(CriteoModel(), Options(precision, kLeaves * leaf_rows, fused),
                             &stream);
  executor.Reserve({kLeaves, leaf_rows});
  return before - emulation::FreeDeviceBytes();
}

struct DenseStep {
  int64_t calls;
  // Of a row: what more rows in the same leaves cost.
  double moved_kb;
  double memory_kb;
};
template <typename A>
DenseStep Measure(Precision precision, bool fused) {
  const emulation::Traffic small = StepTraffic<A>(precision, kRows, fused);
  const emulation::Traffic large = StepTraffic<A>(precision, 2 * kRows, fused);
  EXPECT_EQ(small.calls, large.calls);
  const auto a_row = [](int64_t more_bytes) {
    return static_cast<double>(more_bytes) / static_cast<double>(kRows * kLeaves) / 1e3;
  };
  const double read = a_row(large.read_bytes - small.read_bytes);
  const double written = a_row(large.written_bytes - small.written_bytes);
  // Of so many rows that what is there once for all rows hides none of them.
  const double memory =
      a_row(MemoryBytes<A>(precision, 160, fused) - MemoryBytes<A>(precision, 128, fused));
  const char* const name = precision == Precision::kFloat32 ? "FLOAT32" : "BFLOAT16";
  std::printf("%s, %s: %lld calls, %.1f KB a row read, %.1f written, %.1f of memory\n", name,
              fused ? "one kernel a pass" : "by products", static_cast<long long>(large.calls),
              read, written, memory);
  return {large.calls, read + written, memory};
}

template <typename A>
void ExpectSavings(Precision precision) {
  const DenseStep products = Measure<A>(precision, /*fused=*/false);
  const DenseStep fused = Measure<A>(precision, /*fused=*/true);
  // Two blocks, of 11 calls and of 2.
  EXPECT_EQ(products.calls - fused.calls, 18);
  // 15 tokens of 1,664 and 130 numbers (docs/inside/gpu.md); a tenth for pages that calls share.
  const double saved_kb = 2 * 15 * (1664 - 130) * sizeof(A) / 1e3;
  EXPECT_NEAR(products.moved_kb - fused.moved_kb, saved_kb, saved_kb / 10);
  // Up-projections and h, which are kept, of both.
  EXPECT_GE(products.memory_kb - fused.memory_kb, 2 * 15 * 3 * 78 * sizeof(A) / 1e3);
}

TEST(TrafficTest, WhatTheFusedNetworkSaves) {
  if (emulation::CurrentSchedule().order != emulation::Order::kAscending) {
    GTEST_SKIP() << "counted where threads run in order";
  }
  ExpectSavings<float>(Precision::kFloat32);
  ExpectSavings<BFloat16>(Precision::kBFloat16);
}

}  // namespace
}  // namespace elastor::cuda
