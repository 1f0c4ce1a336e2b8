#include "core/kernels/sinkhorn.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/instantiate.h"
#include "core/kernels/cpu/vec_math.h"

namespace elastor {
namespace {

// a_i = log sum_j exp(s_ji - b_j), the lanes being i. s: [size][stride].
template <typename T>
void LogSums(int64_t size, int64_t stride, const T* s, const T* b, T* a) {
  for (int64_t i = 0; i < stride; i += kLanes<T>) {
    Vec<T> most = Load(s + i) - Broadcast(b[0]);
    for (int64_t j = 1; j < size; ++j) {
      most = AtLeast(most, Load(s + j * stride + i) - Broadcast(b[j]));
    }
    Vec<T> sum = {};
    for (int64_t j = 0; j < size; ++j) {
      sum += Exp((Load(s + j * stride + i) - Broadcast(b[j])) - most);
    }
    Save(a + i, most + Log(sum));
  }
}

}  // namespace

template <typename T>
Sinkhorn<T>::Sinkhorn(const SinkhornShape& shape)
    : shape_(shape),
      stride_((shape.size + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
      scores_(shape.count * shape.size * stride_),
      vectors_(shape.count * shape.vectors() * stride_),
      matrices_(shape.elements()) {}

template <typename T>
void Sinkhorn<T>::Compute(const T* logits) {
  const int64_t size = shape_.size;
  const T scale = static_cast<T>(0.5 / shape_.tau);
  for (int64_t m = 0; m < shape_.count; ++m) {
    const T* const a = logits + m * shape_.matrix();
    T* const s = scores_.data() + m * size * stride_;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        s[i * stride_ + j] = (a[i * size + j] + a[j * size + i]) * scale;
      }
    }
    T* const vectors = vectors_.data() + m * shape_.vectors() * stride_;
    for (int64_t t = 1; t < shape_.vectors(); ++t) {
      LogSums(size, stride_, s, vectors + (t - 1) * stride_, vectors + t * stride_);
    }
    const T* of_rows = vector(m, shape_.vectors() - 2);
    const T* of_columns = vector(m, shape_.vectors() - 1);
    if (shape_.transposed) std::swap(of_rows, of_columns);
    T* const w = matrices_.data() + m * shape_.matrix();
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < stride_; j += kLanes<T>) {
        T lanes[kLanes<T>];
        Save(lanes,
             Exp((Load(s + i * stride_ + j) - Broadcast(of_rows[i])) - Load(of_columns + j)));
        std::copy_n(lanes, std::min<int64_t>(kLanes<T>, size - j), w + i * size + j);
      }
    }
  }
}

// A vector a of f(b) = a has da/dS_ij = P_ij = exp(S_ij - a_i - b_j) for a_i, and da_i/db_j =
// -P_ij. From the last vector back, dS gets da_i P_ij.
template <typename T>
void Sinkhorn<T>::Backward(const T* dmatrices, T* dlogits, T* scratch) const {
  const int64_t size = shape_.size;
  const T scale = static_cast<T>(0.5 / shape_.tau);
  T* const ds = scratch;  // [size][stride]
  for (int64_t m = 0; m < shape_.count; ++m) {
    T* da = ds + size * stride_;
    T* db = da + stride_;
    const T* const s = scores(m);
    const T* const w = matrices_.data() + m * shape_.matrix();
    const T* const dw = dmatrices + m * shape_.matrix();
    T* const of_rows = shape_.transposed ? da : db;
    T* const of_columns = shape_.transposed ? db : da;
    std::fill_n(da, 2 * stride_, T{0});
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        const T d = dw[i * size + j] * w[i * size + j];
        ds[i * stride_ + j] = d;
        of_rows[i] -= d;
        of_columns[j] -= d;
      }
      std::fill(ds + i * stride_ + size, ds + (i + 1) * stride_, T{0});
    }
    for (int64_t t = shape_.vectors() - 1; t > 0; --t) {
      const T* const a = vector(m, t);
      const T* const b = vector(m, t - 1);
      for (int64_t j = 0; j < stride_; j += kLanes<T>) {
        const Vec<T> of_b = Load(b + j);
        Vec<T> sum = Load(db + j);
        for (int64_t i = 0; i < size; ++i) {
          const Vec<T> d = Broadcast(da[i]);
          const Vec<T> p = Exp((Load(s + i * stride_ + j) - Broadcast(a[i])) - of_b);
          T* const at = ds + i * stride_ + j;
          Save(at, Fma(d, p, Load(at)));
          sum = NegativeFma(d, p, sum);
        }
        Save(db + j, sum);
      }
      std::swap(da, db);
      std::fill_n(db, stride_, T{0});
    }
    T* const dl = dlogits + m * shape_.matrix();
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        dl[i * size + j] = (ds[i * stride_ + j] + ds[j * stride_ + i]) * scale;
      }
    }
  }
}

template <typename T>
void MultiplyFactors(int64_t rows, int64_t terms, int64_t columns, const T* left, const T* right,
                     T* product) {
  for (int64_t i = 0; i < rows; ++i) {
    T* const row = product + i * columns;
    std::fill_n(row, columns, T{0});
    for (int64_t t = 0; t < terms; ++t) {
      for (int64_t j = 0; j < columns; ++j) {
        row[j] = std::fma(left[i * terms + t], right[t * columns + j], row[j]);
      }
    }
  }
}

template <typename T>
void FactorGradients(int64_t rows, int64_t terms, int64_t columns, const T* left, const T* right,
                     const T* dproduct, T* dleft, T* dright) {
  std::fill_n(dleft, rows * terms, T{0});
  std::fill_n(dright, terms * columns, T{0});
  for (int64_t i = 0; i < rows; ++i) {
    const T* const d = dproduct + i * columns;
    T* const of_row = dleft + i * terms;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t t = 0; t < terms; ++t) {
        of_row[t] = std::fma(d[j], right[t * columns + j], of_row[t]);
      }
    }
    for (int64_t t = 0; t < terms; ++t) {
      for (int64_t j = 0; j < columns; ++j) {
        T& sum = dright[t * columns + j];
        sum = std::fma(left[i * terms + t], d[j], sum);
      }
    }
  }
}

template class Sinkhorn<float>;
template class Sinkhorn<double>;
ELASTOR_INSTANTIATE(MultiplyFactors, float, double)
ELASTOR_INSTANTIATE(FactorGradients, float, double)

}  // namespace elastor
