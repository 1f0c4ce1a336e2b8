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

// In fast mode the per-token network is computed by products.
DeviceModelOptions Options(int64_t rows, bool fused) {
  return {.canonical_rows = rows, .canonical_leaves = kLeaves, .reproducible = fused};
}

// Of Forward and Backward.
emulation::Traffic StepTraffic(int32_t leaf_rows, bool fused) {
  const elastor::Graph graph = CriteoModel();
  const LeafBatch batch = MakeLeafBatch(graph, std::vector<int32_t>(kLeaves, leaf_rows), leaf_rows);
  DeviceRun<float> run(graph, MakeWeights(graph.parameters()), batch, 0, kLeaves,
                       Options(kLeaves * leaf_rows, fused));
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
int64_t MemoryBytes(int64_t leaf_rows, bool fused) {
  Stream stream;
  const int64_t before = emulation::FreeDeviceBytes();
  DeviceExecutor<float> executor(CriteoModel(), Options(kLeaves * leaf_rows, fused), &stream);
  executor.Reserve({kLeaves, leaf_rows});
  return before - emulation::FreeDeviceBytes();
}

struct DenseStep {
  int64_t calls;
  // Of a row: what more rows in the same leaves cost.
  double moved_kb;
  double memory_kb;
};
DenseStep Measure(bool fused) {
  const emulation::Traffic small = StepTraffic(32, fused);
  const emulation::Traffic large = StepTraffic(64, fused);
  EXPECT_EQ(small.calls, large.calls);
  const auto a_row = [](int64_t more_bytes) {
    return static_cast<double>(more_bytes) / (32 * kLeaves) / 1e3;
  };
  const double read = a_row(large.read_bytes - small.read_bytes);
  const double written = a_row(large.written_bytes - small.written_bytes);
  // Of so many rows that what is there once for all rows hides none of them.
  const double memory = a_row(MemoryBytes(544, fused) - MemoryBytes(512, fused));
  std::printf("%s: %lld calls, %.1f KB a row read, %.1f written, %.1f of memory\n",
              fused ? "one kernel a pass" : "by products", static_cast<long long>(large.calls),
              read, written, memory);
  return {large.calls, read + written, memory};
}

TEST(TrafficTest, WhatTheFusedNetworkSaves) {
  if (emulation::CurrentSchedule().order != emulation::Order::kAscending) {
    GTEST_SKIP() << "counted where threads run in order";
  }
  const DenseStep products = Measure(/*fused=*/false);
  const DenseStep fused = Measure(/*fused=*/true);
  // Two blocks, of 11 calls and of 2.
  EXPECT_EQ(products.calls - fused.calls, 18);
  // 15 tokens of 1,664 and 130 numbers (docs/gpu.md); a tenth for pages that calls share.
  EXPECT_NEAR(products.moved_kb - fused.moved_kb, 2 * 15 * (1664 - 130) * 4 / 1e3, 18);
  // Up-projections and h, which are kept, of both.
  EXPECT_GE(products.memory_kb - fused.memory_kb, 2 * 15 * 3 * 78 * 4 / 1e3);
}

}  // namespace
}  // namespace elastor::cuda
