#include "core/kernels/cpu/bfloat16.h"

#include <algorithm>
#include <vector>

#include "core/base/log.h"
#include "core/kernels/cpu/line_aligned.h"

namespace elastor {
namespace {

// Words of activations that are made in one go, to be read from the first-level cache.
constexpr int64_t kWordsAtOnce = 24 * 1024 / sizeof(float);
constexpr int64_t kMinPanels = 2;
constexpr int kMaxSegments = 8;

// A view of `memory`, from the start of a cache line on.
Panels<float> Words(int64_t rows, int64_t features, std::vector<float>& memory) {
  return {LineAligned(PanelElements(rows, features), memory), rows, features,
          PanelStride(features)};
}

// Calls product(begin, count, runs) for some rows at a time, multiples of kPanelRows but for the
// last: `runs` are the words of these rows, cut at multiples of kReductionBlock.
template <typename Product>
void InPortions(std::span<const Panels<const float>> x, int64_t words, const Product& product) {
  thread_local std::vector<float> memory;
  thread_local std::vector<Run<float>> runs;
  const int64_t panels = std::max(kMinPanels, kWordsAtOnce / PanelStride(words));
  const int64_t rows = x[0].rows;
  for (int64_t begin = 0; begin < rows; begin += panels * kPanelRows) {
    const int64_t count = std::min(panels * kPanelRows, rows - begin);
    const Panels<float> portion = Words(count, words, memory);
    Panels<const float> segments[kMaxSegments];
    CHECK_LE(x.size(), std::size(segments));
    for (size_t s = 0; s < x.size(); ++s) segments[s] = x[s].Rows(begin, count);
    KernelsOfBFloat16().pair_features(segments, x.size(), portion);
    runs.clear();
    for (int64_t k = 0; k < words; k += kReductionBlock) {
      runs.push_back({portion.Slice(k, std::min(kReductionBlock, words - k)), k > 0});
    }
    product(begin, count, std::span<const Run<float>>(runs));
  }
}

}  // namespace

void MatMulInBFloat16(const PackedTiles<float>& a, std::span<const Panels<const float>> x,
                      Panels<float> y, const Epilogue<float>& epilogue) {
  InPortions(x, a.columns, [&](int64_t begin, int64_t count, std::span<const Run<float>> runs) {
    const auto rows = [&](auto view) { return view.Rows(begin, count); };
    const auto some = [&](auto view) { return view.data == nullptr ? view : rows(view); };
    Epilogue<float> e = epilogue;
    e.derivative = some(e.derivative);
    e.unscaled = some(e.unscaled);
    e.multiplier = some(e.multiplier);
    e.residual = some(e.residual);
    e.second_output = some(e.second_output);
    e.second_multiplier = some(e.second_multiplier);
    KernelsOfBFloat16().matmul(a, runs.data(), runs.size(), rows(y), e);
  });
}

void GatedUpProjectionInBFloat16(const PackedTiles<float>& w, Panels<const float> x,
                                 const float* bias1, const float* bias2, Activation activation,
                                 Panels<float> h, Panels<float> first_factor,
                                 Panels<float> second_factor) {
  InPortions({&x, 1}, w.columns,
             [&](int64_t begin, int64_t count, std::span<const Run<float>> runs) {
               const auto some = [&](auto view) {
                 return view.data == nullptr ? view : view.Rows(begin, count);
               };
               KernelsOfBFloat16().gated_up_projection(w, runs.data(), runs.size(), bias1, bias2,
                                                       activation, some(h), some(first_factor),
                                                       some(second_factor));
             });
}

void WeightGradientInBFloat16(std::span<const LeafRows> leaves, Panels<const float> dy,
                              Panels<const float> x, float* dw, int64_t stride, Store store) {
  thread_local std::vector<float> dy_memory;
  thread_local std::vector<float> x_memory;
  thread_local std::vector<LeafRows> word_leaves;
  int64_t panels = 0;
  word_leaves.resize(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    word_leaves[i] = leaves[i];
    word_leaves[i].rows = leaves[i].Of(x).panels() * kPanelRows / 2;
    word_leaves[i].first_panel = panels;
    panels += (word_leaves[i].rows + kPanelRows - 1) / kPanelRows;
  }
  const Panels<float> dy_words = Words(panels * kPanelRows, dy.features, dy_memory);
  const Panels<float> x_words = Words(panels * kPanelRows, x.features, x_memory);
  for (size_t i = 0; i < leaves.size(); ++i) {
    KernelsOfBFloat16().pair_rows(leaves[i].Of(dy), word_leaves[i].Of(dy_words));
    KernelsOfBFloat16().pair_rows(leaves[i].Of(x), word_leaves[i].Of(x_words));
  }
  KernelsOfBFloat16().gradient.weight(word_leaves.data(), static_cast<int64_t>(leaves.size()),
                                      dy_words, x_words, dw, stride, store,
                                      WeightGradientScratch<float>(panels));
}

}  // namespace elastor
