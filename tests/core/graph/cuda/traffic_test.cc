#include "core/cuda/emulation/traffic.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/cuda/emulation/schedule.h"
#include "tests/core/graph/cuda/device_run.h"
#include "tests/core/models/test_model.h"

namespace elastor::cuda {
namespace {

using emulation::Traffic;

// RankElastor with the paper's Criteo settings.
elastor::Graph CriteoModel() {
  return MakeTestModel({.numeric_fields = 13, .categorical_fields = 26, .embedding_width = 20},
                       "rank_elastor { tokens: 15 token_width: 26 blocks: 2 "
                       "feed_forward { kind: GATED activation: GELU expansion: 3 } }")
      .graph();
}

// Of Forward and Backward over two leaves.
Traffic StepTraffic(int32_t leaf_rows, bool fused) {
  const elastor::Graph graph = CriteoModel();
  const LeafBatch batch = MakeLeafBatch(graph, {leaf_rows, leaf_rows}, leaf_rows);
  // In fast mode the per-token network is computed by products.
  DeviceRun<float> run(
      graph, MakeWeights(graph.parameters()), batch, 0, 2,
      {.canonical_rows = 2 * leaf_rows, .canonical_leaves = 2, .reproducible = fused});
  run.Enqueue(/*training=*/true);
  run.stream().Synchronize();
  const emulation::TrafficCount count;
  run.executor().Forward(run.pass());
  run.gradients().Begin(nullptr);
  run.executor().Backward(run.pass(), &run.gradients());
  run.stream().Synchronize();
  return count.traffic();
}

struct PerRow {
  int64_t calls;
  double kilobytes;
};
// What more rows in the same leaves cost; `calls` are a step's.
PerRow DenseStep(bool fused) {
  const Traffic small = StepTraffic(128, fused);
  const Traffic large = StepTraffic(256, fused);
  EXPECT_EQ(small.calls, large.calls);
  const double read = static_cast<double>(large.read_bytes - small.read_bytes) / 256;
  const double written = static_cast<double>(large.written_bytes - small.written_bytes) / 256;
  std::printf("%s: %lld calls, %.1f KB a row read, %.1f KB written\n",
              fused ? "one kernel a pass" : "by products", static_cast<long long>(large.calls),
              read / 1e3, written / 1e3);
  return {large.calls, (read + written) / 1e3};
}

TEST(TrafficTest, WhatTheFusedNetworkSaves) {
  if (emulation::CurrentSchedule().order != emulation::Order::kAscending) {
    GTEST_SKIP() << "counted where threads run in order";
  }
  const PerRow products = DenseStep(/*fused=*/false);
  const PerRow fused = DenseStep(/*fused=*/true);
  // Two blocks, of 11 calls each.
  EXPECT_EQ(products.calls - fused.calls, 18);
  // 15 tokens of 1,664 and 130 numbers (docs/gpu.md); a tenth for pages that calls share.
  EXPECT_NEAR(products.kilobytes - fused.kilobytes, 2 * 15 * (1664 - 130) * 4 / 1e3, 18);
}

}  // namespace
}  // namespace elastor::cuda
