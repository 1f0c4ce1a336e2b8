#include "core/ntk/kernel_product.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/graph/per_sample.h"
#include "core/kernels/matmul.h"

namespace elastor {

// Adds the gradients of all passes at the places of the layout.
class KernelProduct::SummingSink final : public GradientSink<double> {
 public:
  SummingSink(const ParameterLayout* layout, double* sums) : layout_(layout), sums_(sums) {}
  Target Open(int parameter) override {
    return {sums_ + (*layout_)[parameter].offset, Store::kAdd};
  }
  void Close(int) override {}

 private:
  const ParameterLayout* layout_;
  double* sums_;
};

// <row gradient, gradient> from the factors: dy (G x).
class KernelProduct::ProductSink final : public RowGradientSink<double> {
 public:
  ProductSink(const ParameterLayout* layout, const double* gradient, double* result)
      : layout_(layout), gradient_(gradient), result_(result) {}

  void AddProduct(int parameter, int64_t first, Panels<const double> dy,
                  Panels<const double> x) override {
    packed_.Pack({{MatrixView<double>::RowMajor(At(parameter, first), dy.features, x.features)}});
    memory_.resize(PanelElements(dy.rows, dy.features));
    const Panels<double> y = {memory_.data(), dy.rows, dy.features, PanelStride(dy.features)};
    MatMul<double>(packed_, {{x}}, y, {});
    for (int64_t row = 0; row < dy.rows; ++row) {
      for (int64_t j = 0; j < dy.features; ++j) result_[row] += dy.At(row, j) * y.At(row, j);
    }
  }
  void AddTerm(int parameter, int64_t first, Panels<const double> a,
               Panels<const double> b) override {
    const double* const gradient = At(parameter, first);
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int64_t f = 0; f < a.features; ++f) {
        result_[row] += gradient[f] * a.At(row, f) * (b.data == nullptr ? 1.0 : b.At(row, f));
      }
    }
  }

 private:
  const double* At(int parameter, int64_t first) const {
    return gradient_ + (*layout_)[parameter].offset + first;
  }

  const ParameterLayout* layout_;
  const double* gradient_;
  double* result_;
  PackedMatrix<double> packed_;
  std::vector<double> memory_;
};

KernelProduct::KernelProduct(const Graph& graph, const float* weights, ThreadPool* pool)
    : passes_(graph, weights, pool),
      with_row_gradients_(WithRowGradients(graph)),
      gradients_(pool->threads(), std::vector<double>(graph.parameters().flat_size())) {
  CHECK(CheckPerSampleGradients(graph).ok());
}

KernelProduct::~KernelProduct() = default;

void KernelProduct::AddTransposed(const NtkRows& rows, int64_t output, const double* v,
                                  std::span<double> gradient, double* deltas) {
  for (std::vector<double>& own : gradients_) std::ranges::fill(own, 0.0);
  passes_.ForEachPass(rows.rows, [&](int t, int64_t first, int64_t count) {
    SummingSink sink(&passes_.graph().parameters(), gradients_[t].data());
    passes_.Run(rows, first, count,
                {.output = output, .scales = v, .sink = &sink, .deltas = deltas}, t);
  });
  for (const std::vector<double>& own : gradients_) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += own[i];
  }
}

// Parameters without row gradients take a pass a row.
void KernelProduct::AddProduct(const NtkRows& rows, int64_t output,
                               std::span<const double> gradient, double* result, double* deltas) {
  const ParameterLayout& layout = passes_.graph().parameters();
  const bool all = std::ranges::find(with_row_gradients_, false) == with_row_gradients_.end();
  passes_.ForEachPass(rows.rows, [&](int t, int64_t first, int64_t count) {
    StoringSink<double> sink(&layout);
    sink.Begin(gradients_[t].data());
    ProductSink product(&layout, gradient.data(), result + first);
    passes_.Run(rows, first, count,
                {.output = output, .sink = &sink, .row_sink = &product, .deltas = deltas}, t);
    for (int64_t row = first; !all && row < first + count; ++row) {
      passes_.Run(rows, row, 1, {.output = output, .sink = &sink}, t);
      for (size_t p = 0; p < with_row_gradients_.size(); ++p) {
        if (with_row_gradients_[p]) continue;
        const auto& [offset, size] = std::pair(layout[p].offset, layout[p].size);
        for (int64_t i = offset; i < offset + size; ++i) {
          result[row] += gradients_[t][i] * gradient[i];
        }
      }
    }
  });
}

}  // namespace elastor
