#include "core/kernels/elementwise.h"

#include <cmath>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/activate.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor {
namespace {

// Calls body(data of x at a run of 16 rows, same of y, feature) for every panel and feature.
template <typename T, typename Body>
[[gnu::always_inline]] inline void ForEachLine(Panels<T> y, Body body) {
  for (int64_t panel = 0; panel < y.panels(); ++panel) {
    for (int64_t f = 0; f < y.features; ++f) {
      for (int64_t lane = 0; lane < kPanelRows; lane += kLanes<T>) {
        const auto at = [&](auto view) {
          return view.Panel(panel) + f * view.feature_stride + lane;
        };
        body(at, f);
      }
    }
  }
}

// log(exp(-a) + exp(-a - b)).
template <typename V>
[[gnu::always_inline]] inline V LogOfFirst(V a, V b) {
  const V magnitude = b < 0 ? -b : b;
  return (b < 0 ? -b : V{}) + Log1pOfUnit(Exp(-magnitude)) - a;
}

template <typename T>
void CheckSameShape(Panels<const T> a, Panels<const T> b) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.features, b.features);
}

}  // namespace

template <typename T>
void Add(Panels<const T> a, Panels<const T> b, Panels<T> y) {
  CheckSameShape<T>(a, y);
  CheckSameShape<T>(b, y);
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Load(at(a)) + Load(at(b))); });
}

template <typename T>
void Multiply(Panels<const T> a, Panels<const T> b, Panels<T> y) {
  CheckSameShape<T>(a, y);
  CheckSameShape<T>(b, y);
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Load(at(a)) * Load(at(b))); });
}

template <typename T>
void Scale(T factor, Panels<const T> x, Panels<T> y) {
  CheckSameShape<T>(x, y);
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Broadcast(factor) * Load(at(x))); });
}

template <typename T>
void SigmoidGate(Panels<const T> a, Panels<const T> b, Panels<T> y) {
  CheckSameShape<T>(a, y);
  CheckSameShape<T>(b, y);
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Load(at(a)) * Sigmoid(Load(at(b)))); });
}

template <typename T>
void SigmoidGateBackward(Panels<const T> a, Panels<const T> b, Panels<const T> dy, Panels<T> da,
                         Panels<T> db) {
  CheckSameShape<T>(a, da);
  CheckSameShape<T>(b, da);
  CheckSameShape<T>(dy, da);
  CheckSameShape<T>(db, da);
  ForEachLine(da, [&](auto at, int64_t) {
    const Vec<T> gradient = Load(at(dy));
    const ValueAndSlope<Vec<T>> gate = SigmoidAndSlope(Load(at(b)));
    const Vec<T> of_gate = gradient * Load(at(a)) * gate.slope;
    Save(at(da), gradient * gate.value);
    Save(at(db), of_gate);
  });
}

template <typename T>
void Relu(Panels<const T> x, Panels<T> y) {
  CheckSameShape<T>(x, y);
  const Vec<T> zero = Broadcast(T{0});
  ForEachLine(y, [&](auto at, int64_t) {
    const Vec<T> value = Load(at(x));
    Save(at(y), value > zero ? value : zero);
  });
}

template <typename T>
void ReluBackward(Panels<const T> y, Panels<const T> dy, Panels<T> dx) {
  CheckSameShape<T>(y, dx);
  CheckSameShape<T>(dy, dx);
  const Vec<T> zero = Broadcast(T{0});
  const Vec<T> one = Broadcast(T{1});
  ForEachLine(dx, [&](auto at, int64_t) {
    Save(at(dx), Load(at(dy)) * (Load(at(y)) > zero ? one : zero));
  });
}

template <typename T>
void Activate(Activation activation, Panels<const T> x, Panels<T> y, Panels<T> derivative) {
  CheckSameShape<T>(x, y);
  WithActivation(activation, [&](const auto& function) {
    ForEachLine(y, [&](auto at, int64_t) {
      const auto result = function(Load(at(x)));
      if (derivative.data != nullptr) Save(at(derivative), result.slope);
      Save(at(y), result.value);
    });
  });
}

template <typename T>
void Copy(Panels<const T> x, Panels<T> y) {
  CheckSameShape<T>(x, y);
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Load(at(x))); });
}

template <typename T>
void Fill(T constant, Panels<T> y) {
  ForEachLine(y, [&](auto at, int64_t) { Save(at(y), Broadcast(constant)); });
}

template <typename T>
void BlockTranspose(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y) {
  CHECK_EQ(x.features, tokens * width);
  CHECK_EQ(width % tokens, 0);
  CheckSameShape<T>(x, y);
  const int64_t block = width / tokens;
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      Copy<T>(x.Slice(j * width + i * block, block), y.Slice(i * width + j * block, block));
    }
  }
}

template <typename T>
void MeanPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y) {
  CHECK_EQ(x.features, tokens * width);
  CHECK_EQ(y.features, width);
  CHECK_EQ(x.rows, y.rows);
  const Vec<T> share = Broadcast(T(1) / static_cast<T>(tokens));
  ForEachLine(y, [&](auto at, int64_t) {
    Vec<T> sum = Load(at(x));
    for (int64_t t = 1; t < tokens; ++t) sum += Load(at(x) + t * width * x.feature_stride);
    Save(at(y), sum * share);
  });
}

template <typename T>
void MeanPoolBackward(int64_t tokens, int64_t width, Panels<const T> dy, Panels<T> dx) {
  CHECK_EQ(dx.features, tokens * width);
  CHECK_EQ(dy.features, width);
  CHECK_EQ(dx.rows, dy.rows);
  const Vec<T> share = Broadcast(T(1) / static_cast<T>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const Panels<T> token = dx.Slice(t * width, width);
    ForEachLine(token, [&](auto at, int64_t) { Save(at(token), Load(at(dy)) * share); });
  }
}

template <typename T>
void SumPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y) {
  CHECK_EQ(x.features, tokens * width);
  CHECK_EQ(y.features, tokens);
  CHECK_EQ(x.rows, y.rows);
  ForEachLine(y, [&](auto at, int64_t t) {
    const T* const token = at(x) + t * (width - 1) * x.feature_stride;
    Vec<T> sum = Load(token);
    for (int64_t f = 1; f < width; ++f) sum += Load(token + f * x.feature_stride);
    Save(at(y), sum);
  });
}

template <typename T>
void FactorizationPool(int64_t tokens, int64_t width, Panels<const T> x, Panels<T> y) {
  CHECK_EQ(x.features, tokens * width);
  CHECK_EQ(y.features, width);
  CHECK_EQ(x.rows, y.rows);
  ForEachLine(y, [&](auto at, int64_t) {
    Vec<T> before = Load(at(x));
    Vec<T> products = Broadcast(T{0});
    for (int64_t t = 1; t < tokens; ++t) {
      const Vec<T> token = Load(at(x) + t * width * x.feature_stride);
      products += token * before;
      before += token;
    }
    Save(at(y), products);
  });
}

template <typename T>
void FactorizationPoolBackward(int64_t tokens, int64_t width, Panels<const T> x, Panels<const T> dy,
                               Panels<T> dx) {
  CHECK_EQ(dy.features, width);
  CHECK_EQ(dx.features, tokens * width);
  CheckSameShape<T>(x, dx);
  ForEachLine(dx.Slice(0, width), [&](auto at, int64_t) {
    Vec<T> sum = Load(at(x));
    for (int64_t t = 1; t < tokens; ++t) sum += Load(at(x) + t * width * x.feature_stride);
    const Vec<T> gradient = Load(at(dy));
    for (int64_t t = 0; t < tokens; ++t) {
      const Vec<T> token = Load(at(x) + t * width * x.feature_stride);
      Save(at(dx) + t * width * dx.feature_stride, gradient * (sum - token));
    }
  });
}

template <typename T>
void JointLogit(Panels<const T> x, Panels<T> y) {
  CHECK_EQ(y.features, 2);
  CheckSameShape<T>(x, y);
  ForEachLine(y.Slice(0, 1), [&](auto at, int64_t) {
    const Vec<T> a = Load(at(x)), b = Load(at(x) + x.feature_stride);
    const Vec<T> first = LogOfFirst(a, b);
    const Vec<T> difference = first + b;
    const Vec<T> magnitude = difference < 0 ? -difference : difference;
    Save(at(y), a);
    Save(at(y) + y.feature_stride, -((difference < 0 ? -b : first) + Log1pOfUnit(Exp(-magnitude))));
  });
}

template <typename T>
void JointLogitBackward(Panels<const T> x, Panels<const T> dy, Panels<T> dx) {
  CHECK_EQ(dx.features, 2);
  CheckSameShape<T>(x, dx);
  CheckSameShape<T>(dy, dx);
  ForEachLine(dx.Slice(0, 1), [&](auto at, int64_t) {
    const Vec<T> a = Load(at(x)), b = Load(at(x) + x.feature_stride);
    const Vec<T> share = Sigmoid(LogOfFirst(a, b) + b);
    const Vec<T> first = Load(at(dy)), both = Load(at(dy) + dy.feature_stride);
    Save(at(dx), first + both * share);
    Save(at(dx) + dx.feature_stride, both * (share * Sigmoid(-b) + (1 - share)));
  });
}

template <typename T>
T Sigmoid(T z) {
  return Sigmoid(Broadcast(z))[0];
}

template <typename T>
void BceWithLogits(Panels<const T> logits, Strided<const float> labels, const float* weights,
                   T scale, Strided<double> loss, Panels<T> dlogits) {
  CHECK_EQ(logits.features, 1);
  CheckSameShape<T>(logits, dlogits);
  for (int64_t row = 0; row < logits.panels() * kPanelRows; row += kLanes<T>) {
    const Vec<T> z = Load(&logits.At(row, 0));
    const Vec<T> probability = Sigmoid(z);
    const Vec<T> magnitude = z < 0 ? -z : z;
    const Vec<T> log_term = Log1pOfUnit(Exp(-magnitude));
    Vec<T> gradient = {};
    for (int lane = 0; lane < kLanes<T> && row + lane < logits.rows; ++lane) {
      const T label = labels[row + lane];
      const bool missing = std::isnan(label);
      const double logit = z[lane];
      if (loss.data != nullptr) {
        loss[row + lane] = missing ? 0 : (logit < 0 ? 0.0 : logit) - logit * label + log_term[lane];
      }
      if (missing) continue;
      const T weight = weights == nullptr ? T(1) : static_cast<T>(weights[row + lane]);
      gradient[lane] = (probability[lane] - label) * weight * scale;
    }
    Save(&dlogits.At(row, 0), gradient);
  }
}

template <typename T>
void StudentGradient(Panels<const T> logits, Panels<const T> teacher, Strided<const float> labels,
                     const float* weights, T scale, Panels<T> dlogits) {
  CHECK_EQ(logits.features, 1);
  CheckSameShape<T>(logits, dlogits);
  CheckSameShape<T>(teacher, dlogits);
  for (int64_t row = 0; row < logits.panels() * kPanelRows; row += kLanes<T>) {
    const Vec<T> difference =
        Sigmoid(Load(&logits.At(row, 0))) - Sigmoid(Load(&teacher.At(row, 0)));
    Vec<T> gradient = {};
    for (int lane = 0; lane < kLanes<T> && row + lane < logits.rows; ++lane) {
      if (std::isnan(labels[row + lane])) continue;
      const T weight = weights == nullptr ? T(1) : static_cast<T>(weights[row + lane]);
      gradient[lane] = difference[lane] * weight * scale;
    }
    Save(&dlogits.At(row, 0), gradient);
  }
}

ELASTOR_INSTANTIATE(StudentGradient, float, double)
ELASTOR_INSTANTIATE(Add, float, double)
ELASTOR_INSTANTIATE(Multiply, float, double)
ELASTOR_INSTANTIATE(Scale, float, double)
ELASTOR_INSTANTIATE(SigmoidGate, float, double)
ELASTOR_INSTANTIATE(SigmoidGateBackward, float, double)
ELASTOR_INSTANTIATE(Relu, float, double)
ELASTOR_INSTANTIATE(ReluBackward, float, double)
ELASTOR_INSTANTIATE(Activate, float, double)
ELASTOR_INSTANTIATE(Copy, float, double)
ELASTOR_INSTANTIATE(Fill, float, double)
ELASTOR_INSTANTIATE(BlockTranspose, float, double)
ELASTOR_INSTANTIATE(SumPool, float, double)
ELASTOR_INSTANTIATE(FactorizationPool, float, double)
ELASTOR_INSTANTIATE(FactorizationPoolBackward, float, double)
ELASTOR_INSTANTIATE(JointLogit, float, double)
ELASTOR_INSTANTIATE(JointLogitBackward, float, double)
ELASTOR_INSTANTIATE(MeanPool, float, double)
ELASTOR_INSTANTIATE(MeanPoolBackward, float, double)
ELASTOR_INSTANTIATE(Sigmoid, float, double)
ELASTOR_INSTANTIATE(BceWithLogits, float, double)

}  // namespace elastor
