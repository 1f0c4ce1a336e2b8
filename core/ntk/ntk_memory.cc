#include "core/ntk/ntk_memory.h"

#include <algorithm>
#include <numeric>

#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/per_sample.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/row_factors.h"

namespace elastor {

std::vector<int64_t> NtkOutputs(int64_t outputs) {
  std::vector<int64_t> chosen(std::min(outputs, kMostNtkOutputs));
  // Steps of the golden section, modulo the outputs: none comes twice.
  int64_t step = outputs <= kMostNtkOutputs ? 1 : (outputs * 89) / 144;
  while (std::gcd(step, outputs) > 1) ++step;
  for (size_t i = 1; i < chosen.size(); ++i) chosen[i] = (chosen[i - 1] + step) % outputs;
  std::ranges::sort(chosen);
  return chosen;
}

NtkMemory::NtkMemory(const Graph& graph)
    : outputs_(std::min(graph.outputs(), kMostNtkOutputs)),
      flat_size_(graph.parameters().flat_size()),
      table_features_(graph.features().table_features()),
      input_bytes_(graph.features().numeric_fields * static_cast<int64_t>(sizeof(float)) +
                   graph.features().categorical_fields * static_cast<int64_t>(sizeof(int64_t))) {
  if (!CheckPerSampleGradients(graph).ok()) return;
  for (const ParameterInfo& parameter : graph.parameters().parameters()) {
    if (parameter.shape.size() > 1) matrices_ += parameter.size;
  }
  workspace_ = CpuExecutor<double>(graph).workspace_plan();
  round_ = 1;
  // How long rows' gradients are, a pass finds, which takes the weights several times over: not for
  // models whose weights say enough, and which nobody may be able to allocate.
  constexpr int64_t kMostNumbers = int64_t{1} << 20;
  if (flat_size_ > kMostNumbers || workspace_.elements_per_panel > kMostNumbers) return;
  ThreadPool alone(1);
  const std::vector<float> weights(flat_size_);
  const RowFactors factors(graph, weights.data(), &alone, kNtkRowElements);
  for (const RowFactors::Round& round : factors.rounds()) round_ = std::max(round_, round.size);
}

int64_t NtkMemory::Bytes(int64_t rows, int64_t own_rows, int rank, int ranks, int threads) const {
  if (round_ == 0) return 0;
  using Wide = __int128;
  const bool lanczos = rows > kMaxNtkEigenvalues;
  // The weights, the matrices packed for either product, and of a thread a pass and a gradient.
  const Wide pass = Wide{workspace_.elements_per_panel} * WorkspacePanels(RowPasses::kRows) +
                    workspace_.flat_elements + workspace_.scratch_elements;
  Wide numbers = flat_size_ + Wide{2} * matrices_ + threads * (pass + flat_size_);
  // Gradients of the tables' features.
  numbers += Wide{lanczos ? 1 : outputs_} * own_rows * table_features_;
  if (lanczos) {
    // Vectors of the method, and the gradients of all ranks.
    numbers += Wide{kNtkLanczosSteps} * rows + Wide{ranks} * flat_size_;
  } else {
    constexpr int64_t kTileElements = kNtkTile * kNtkTile;
    const int64_t blocks = (rows + kNtkTile - 1) / kNtkTile;
    const int64_t tiles = blocks * (blocks + 1) / 2;
    // A part of every row's gradient, a layer's and the whole's own tiles, and on rank 0 all tiles
    // or a solver's copy beside the kernel.
    numbers += Wide{rows} * round_ + 2 * ((tiles - rank + ranks - 1) / ranks) * kTileElements;
    if (rank == 0) numbers += rows * rows + std::max(tiles * kTileElements, rows * rows);
  }
  // All rows as they were read, and what tells a row from others; the own rows' features.
  const Wide bytes = numbers * static_cast<int64_t>(sizeof(double)) +
                     Wide{2} * rows * input_bytes_ +
                     Wide{own_rows} * table_features_ * static_cast<int64_t>(sizeof(float));
  return static_cast<int64_t>(std::min(bytes, Wide{1} << 62));
}

}  // namespace elastor
