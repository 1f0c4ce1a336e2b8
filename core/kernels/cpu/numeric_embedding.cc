#include <cmath>
#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/chains.h"
#include "core/kernels/elementwise.h"

namespace elastor {
namespace {

// One numeric field of one panel: the value (0 where missing or padded) and whether it is missing
// (1 or 0; 0 when padded).
template <typename T>
struct FieldPanel {
  alignas(64) T value[kPanelRows];
  alignas(64) T missing[kPanelRows];

  FieldPanel(const float* values, int64_t count, int64_t field, int64_t panel, int64_t rows) {
    for (int64_t lane = 0; lane < kPanelRows; ++lane) {
      const int64_t row = panel * kPanelRows + lane;
      const float v = row < rows ? values[row * count + field] : 0.0f;
      value[lane] = std::isnan(v) ? T(0) : static_cast<T>(v);
      missing[lane] = std::isnan(v) ? T(1) : T(0);
    }
  }
};

template <typename T>
void Deliver(const std::vector<Chains<T>>& chains, int64_t width, Store store, T* out) {
  for (int64_t begin = 0; begin < width; begin += 8) {
    const Chains<T>* from = chains.data() + begin;  // padded to a multiple of eight
    const ChainSums<T> sums =
        CombineChains({from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7]});
    SaveSums(sums, std::min<int64_t>(8, width - begin), store, out + begin);
  }
}

}  // namespace

template <typename T>
void NumericEmbedding(const float* values, int64_t count, int64_t width, const T* vectors,
                      const T* missing, Panels<T> y) {
  CHECK_EQ(y.features, count * width);
  for (int64_t panel = 0; panel < y.panels(); ++panel) {
    for (int64_t field = 0; field < count; ++field) {
      const FieldPanel<T> in(values, count, field, panel, y.rows);
      for (int64_t c = 0; c < width; ++c) {
        const Vec<T> vector = Broadcast(vectors[field * width + c]);
        const Vec<T> instead = Broadcast(missing[field * width + c]);
        T* out = y.Panel(panel) + (field * width + c) * y.feature_stride;
        for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
          const Vec<T> product = Load(in.value + lane) * vector;
          Save(out + lane, Load(in.missing + lane) > Vec<T>{} ? instead : product);
        }
      }
    }
  }
}

template <typename T>
void NumericEmbeddingBackward(const float* values, int64_t count, int64_t width, Panels<const T> dy,
                              T* dvectors, T* dmissing, Store store) {
  CHECK_EQ(dy.features, count * width);
  thread_local std::vector<Chains<T>> vector_chains;
  thread_local std::vector<Chains<T>> missing_chains;
  const int64_t padded_width = (width + 7) / 8 * 8;
  for (int64_t field = 0; field < count; ++field) {
    vector_chains.assign(padded_width, Chains<T>{});
    missing_chains.assign(padded_width, Chains<T>{});
    for (int64_t panel = 0; panel < dy.panels(); ++panel) {
      const FieldPanel<T> in(values, count, field, panel, dy.rows);
      for (int64_t c = 0; c < width; ++c) {
        const T* d = dy.Panel(panel) + (field * width + c) * dy.feature_stride;
        for (int64_t row = 0; row < kPanelRows; row += kChains) {
          const Chains<T> gradient = RepeatChains(d + row);
          FmaChains(gradient, RepeatChains(in.value + row), vector_chains[c]);
          FmaChains(gradient, RepeatChains(in.missing + row), missing_chains[c]);
        }
      }
    }
    Deliver(vector_chains, width, store, dvectors + field * width);
    Deliver(missing_chains, width, store, dmissing + field * width);
  }
}

ELASTOR_INSTANTIATE(NumericEmbedding, float, double)
ELASTOR_INSTANTIATE(NumericEmbeddingBackward, float, double)

}  // namespace elastor
