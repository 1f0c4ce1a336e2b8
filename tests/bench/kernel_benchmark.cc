// How close the kernels come to the FMA peak of the core they run on, at the shapes of the scaled
// RankElastor (15 tokens of width 26, expansion 3; leaves of 256 rows). Prints name=value lines:
// the peak in GFLOP/s, then for each kernel its share of the peak, the median over rounds. Only
// multiplications and additions of the products count as work: activations, epilogues, loads and
// stores lower the share. With an argument, only kernels whose names contain it are run; with
// BFLOAT16 as the second one, products multiply in bfloat16, whose peak is twice the one printed.

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/elementwise.h"
#include "core/kernels/matmul.h"
#include "core/kernels/norm.h"
#include "tests/bench/fma_peak.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 256;
constexpr int64_t kTokens = 15;
constexpr int64_t kWidth = 26;
constexpr int64_t kHidden = 78;
constexpr int64_t kAll = kTokens * kWidth;  // 390
constexpr int64_t kGroup = 52;              // inputs of one token

Precision precision = Precision::kFloat32;  // of all products

constexpr int kRounds = 41;
constexpr double kSecondsPerRound = 1e-3;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Kernel {
  std::string name;
  double flops = 0;  // of one call; 0: report nanoseconds per row
  std::function<void()> run;
  std::vector<double> results = {};
};

// One round of one kernel between two probes of the peak.
void Measure(Kernel& kernel, int calls, std::vector<double>& peaks) {
  const double before = FmaPeakGflops();
  const double begin = ThreadSeconds();
  for (int i = 0; i < calls; ++i) kernel.run();
  const double seconds = (ThreadSeconds() - begin) / calls;
  const double peak = (before + FmaPeakGflops()) / 2;
  peaks.push_back(peak);
  kernel.results.push_back(kernel.flops > 0 ? kernel.flops / seconds * 1e-9 / peak
                                            : seconds / kRows * 1e9);
}

int CallsPerRound(const Kernel& kernel) {
  kernel.run();
  const double begin = ThreadSeconds();
  kernel.run();
  const double seconds = ThreadSeconds() - begin;
  return std::clamp(static_cast<int>(kSecondsPerRound / std::max(seconds, 1e-9)), 1, 10'000);
}

double ProductFlops(int64_t outputs, int64_t terms) {
  return 2.0 * static_cast<double>(kRows * outputs * terms);
}

// All tokens of a per-token product: weights and slices as a layer has them.
struct TokenWeights {
  std::vector<std::vector<float>> values;
  std::vector<PackedMatrix<float>> packed;

  TokenWeights(int64_t outputs, int64_t terms) : packed(kTokens, PackedMatrix<float>(precision)) {
    for (int64_t t = 0; t < kTokens; ++t) {
      values.push_back(RandomNumbers<float>(outputs * terms, static_cast<uint32_t>(t)));
      const auto view = MatrixView<float>::RowMajor(values.back().data(), outputs, terms);
      packed[t].Pack({&view, 1});
    }
  }
};

// Activations of a whole layer, `width` features for every token.
struct Layer {
  PanelBuffer<float> buffer;
  int64_t width;

  Layer(int64_t token_width, uint32_t seed)
      : buffer(kRows, kTokens * token_width, seed), width(token_width) {}
  Panels<float> Token(int64_t t) { return buffer.view().Slice(t * width, width); }
};

struct Buffers {
  Layer x{kWidth, 1}, y{kWidth, 2}, dx{kWidth, 3}, embeddings{kGroup, 4}, d_embeddings{kGroup, 5};
  Layer h{kHidden, 6}, first{kHidden, 7}, second{kHidden, 8};
  // Gradients of one token at a time, as a layer would keep them.
  PanelBuffer<float> d_first{kRows, kHidden, 9}, d_second{kRows, kHidden, 10};
  Layer scale{1, 11};
  PanelBuffer<float> wide_in{kRows, 400, 11}, wide_out{kRows, 400, 12};
  std::vector<float> gradients = std::vector<float>(2 * kTokens * kWidth * 6 * kWidth + 400 * 400);
  std::vector<float> vectors = RandomNumbers<float>(400, 13);

  // 16 leaves of one panel each.
  PassLeaves leaves =
      PassLeaves(0, std::array<int64_t, 17>{0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192,
                                            208, 224, 240, 256});

  float* Gradient(int64_t token, int64_t size) { return gradients.data() + token * size; }
};

void AddWholeLayerKernels(Buffers& b, std::vector<Kernel>& kernels) {
  const auto add_square = [&](const std::string& name, int64_t size, Panels<float> in,
                              Panels<float> out, bool residual) {
    const auto weights = RandomNumbers<float>(size * size, 20);
    const auto view = MatrixView<float>::RowMajor(weights.data(), size, size);
    PackedMatrix<float> packed(precision);
    packed.Pack({&view, 1});
    kernels.push_back({name, ProductFlops(size, size), [=, packed = std::move(packed), &b] {
                         const std::array<Panels<const float>, 1> segments = {in};
                         Epilogue<float> e;
                         if (residual) e.residual = in;
                         if (!residual) e.bias = b.vectors.data();
                         MatMul<float>(packed, segments, out, e);
                       }});
    kernels.push_back({name + "_gradient", ProductFlops(size, size), [=, &b] {
                         WeightGradient<float>(out, in, b.gradients.data(), size, Store::kOverwrite,
                                               precision);
                       }});
    kernels.push_back({name + "_gradient_of_16_leaves", ProductFlops(size, size), [=, &b] {
                         WeightGradient<float>(b.leaves.leaves(), out, in, b.gradients.data(), size,
                                               Store::kOverwrite, precision);
                       }});
  };
  add_square("mixing_390x390", kAll, b.x.buffer.view(), b.y.buffer.view(), true);
  add_square("mlp_400x400", 400, b.wide_in.view(), b.wide_out.view(), false);
}

void AddTokenForward(Buffers& b, std::vector<Kernel>& kernels) {
  auto up =
      std::make_shared<std::vector<PackedMatrix<float>>>(kTokens, PackedMatrix<float>(precision));
  const TokenWeights w1(kHidden, kWidth);
  const TokenWeights w2(kHidden, kWidth);
  for (int64_t t = 0; t < kTokens; ++t) {
    (*up)[t].PackPair(MatrixView<float>::RowMajor(w1.values[t].data(), kHidden, kWidth),
                      MatrixView<float>::RowMajor(w2.values[t].data(), kHidden, kWidth));
  }
  for (const auto& [name, activation] : {std::pair{"up_156x26_gelu", Activation::kGelu},
                                         {"up_156x26_relu", Activation::kRelu},
                                         {"up_156x26_swish", Activation::kSwish}}) {
    kernels.push_back(
        {name, kTokens * ProductFlops(2 * kHidden, kWidth), [=, &b, activation = activation] {
           for (int64_t t = 0; t < kTokens; ++t) {
             GatedUpProjection<float>((*up)[t], b.x.Token(t), nullptr, nullptr, activation,
                                      b.h.Token(t), b.first.Token(t), b.second.Token(t));
           }
         }});
  }
  kernels.push_back({"down_26x104", kTokens * ProductFlops(kWidth, kHidden + kWidth),
                     [w = TokenWeights(kWidth, kHidden + kWidth), &b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         const std::array<Panels<const float>, 2> in = {b.h.Token(t), b.x.Token(t)};
                         Epilogue<float> e;
                         e.residual = b.x.Token(t);
                         MatMul<float>(w.packed[t], in, b.y.Token(t), e);
                       }
                     }});
  kernels.push_back({"tokenizer_26x52", kTokens * ProductFlops(kWidth, kGroup),
                     [w = TokenWeights(kWidth, kGroup), &b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         const std::array<Panels<const float>, 1> in = {b.embeddings.Token(t)};
                         Epilogue<float> e;
                         e.bias = b.vectors.data();
                         MatMul<float>(w.packed[t], in, b.y.Token(t), e);
                       }
                     }});
}

void AddTokenBackward(Buffers& b, std::vector<Kernel>& kernels) {
  kernels.push_back({"dh_78x26", kTokens * ProductFlops(kHidden, kWidth),
                     [w = TokenWeights(kHidden, kWidth), &b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         const std::array<Panels<const float>, 1> in = {b.y.Token(t)};
                         Epilogue<float> e;
                         e.multiplier = b.first.Token(t);
                         e.second_multiplier = b.second.Token(t);
                         e.second_output = b.d_second.view();
                         MatMul<float>(w.packed[t], in, b.d_first.view(), e);
                       }
                     }});
  kernels.push_back({"dm_26x182", kTokens * ProductFlops(kWidth, 2 * kHidden + kWidth),
                     [w = TokenWeights(kWidth, 2 * kHidden + kWidth), &b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         const std::array<Panels<const float>, 3> in = {
                             b.d_first.read(), b.d_second.read(), b.y.Token(t)};
                         MatMul<float>(w.packed[t], in, b.dx.Token(t), {});
                       }
                     }});
  const auto add_gradient = [&](const std::string& name, Layer& dy, Layer& x) {
    const int64_t size = dy.width * x.width;
    kernels.push_back({name, kTokens * ProductFlops(dy.width, x.width), [=, &b, &dy, &x] {
                         for (int64_t t = 0; t < kTokens; ++t) {
                           WeightGradient<float>(dy.Token(t), x.Token(t), b.Gradient(t, size),
                                                 x.width, Store::kOverwrite, precision);
                         }
                       }});
  };
  kernels.push_back({"dw12_78x26", kTokens * ProductFlops(2 * kHidden, kWidth), [&b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         float* dw = b.Gradient(t, 2 * kHidden * kWidth);
                         WeightGradient<float>(b.d_first.read(), b.x.Token(t), dw, kWidth,
                                               Store::kOverwrite, precision);
                         WeightGradient<float>(b.d_second.read(), b.x.Token(t),
                                               dw + kHidden * kWidth, kWidth, Store::kOverwrite,
                                               precision);
                       }
                     }});
  add_gradient("dwr_26x26", b.y, b.x);
  add_gradient("dw3_26x78", b.y, b.h);
  add_gradient("dw_tokenizer_26x52", b.y, b.embeddings);
  kernels.push_back({"d_embeddings_52x26", kTokens * ProductFlops(kGroup, kWidth),
                     [w = TokenWeights(kGroup, kWidth), &b] {
                       for (int64_t t = 0; t < kTokens; ++t) {
                         const std::array<Panels<const float>, 1> in = {b.y.Token(t)};
                         MatMul<float>(w.packed[t], in, b.d_embeddings.Token(t), {});
                       }
                     }});
}

void AddPasses(Buffers& b, std::vector<Kernel>& kernels) {
  const NormShape shape = {NormKind::kLayer, kWidth, 1e-5};
  kernels.push_back({"norm_forward_ns_per_row", 0, [=, &b] {
                       NormForward<float>(shape, b.x.buffer.read(), b.vectors.data(),
                                          b.vectors.data(), b.y.buffer.view(), b.dx.buffer.view(),
                                          b.scale.buffer.view());
                     }});
  kernels.push_back({"norm_backward_ns_per_row", 0, [=, &b] {
                       NormBackward<float>(shape, b.dx.buffer.read(), b.scale.buffer.read(),
                                           b.vectors.data(), b.x.buffer.read(), {},
                                           b.y.buffer.view(), b.gradients.data(),
                                           b.gradients.data() + kWidth, Store::kOverwrite);
                     }});
  auto rows = std::make_shared<std::vector<float>>(kRows * kTokens * kGroup);
  auto starts = std::make_shared<std::vector<const float*>>();
  for (int64_t row = 0; row < kRows; ++row) {
    starts->push_back(rows->data() + row * kTokens * kGroup);
  }
  kernels.push_back({"rows_to_panels_780_ns_per_row", 0,
                     [=, &b] { RowsToPanels<float>(starts->data(), b.embeddings.buffer.view()); }});
  kernels.push_back({"panels_to_rows_780_ns_per_row", 0, [=, &b] {
                       PanelsToRows<float>(b.embeddings.buffer.read(), rows->data(),
                                           kTokens * kGroup);
                     }});
  kernels.push_back({"dropout_390_ns_per_row", 0, [&b] {
                       Dropout<float>({.key = 1, .step = 2, .first_row = 3, .rate = 0.1},
                                      b.x.buffer.read(), b.y.buffer.view());
                     }});
}

int Main(const std::string& filter) {
  Buffers buffers;
  std::vector<Kernel> kernels;
  AddWholeLayerKernels(buffers, kernels);
  AddTokenForward(buffers, kernels);
  AddTokenBackward(buffers, kernels);
  AddPasses(buffers, kernels);
  std::erase_if(
      kernels, [&](const Kernel& kernel) { return kernel.name.find(filter) == std::string::npos; });
  std::vector<int> calls;
  for (const Kernel& kernel : kernels) calls.push_back(CallsPerRound(kernel));
  std::vector<double> peaks;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kernels.size(); ++i) Measure(kernels[i], calls[i], peaks);
  }
  std::printf("fma_peak_gflops=%.1f\n", Median(peaks));
  for (const Kernel& kernel : kernels) {
    std::printf("%s=%.3f\n", kernel.name.c_str(), Median(kernel.results));
  }
  return 0;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[2]) == "BFLOAT16") {
    elastor::precision = elastor::Precision::kBFloat16;
  }
  return elastor::Main(argc > 1 ? argv[1] : "");
}
