#ifndef ELASTOR_CORE_KERNELS_MIXTURE_H_
#define ELASTOR_CORE_KERNELS_MIXTURE_H_

#include <cstdint>

#include "core/tensor/panels.h"

namespace elastor {

// Softmax-weighted sums of the same tokens: x [rows, E D] holds E tokens of width D, gates
// [rows, T E] the logits of T mixtures of them.
struct MixtureShape {
  int64_t experts = 0;   // E
  int64_t width = 0;     // D
  int64_t mixtures = 0;  // T
};

// p_t = softmax(gates_t),  y_t = sum over i of p_ti x_i.
//   p_ti = e_i / (e_0 + e_1 + ... ascending), e_i = exp(gates_ti - max_j gates_tj);
//   y: p_t0 x_0, then FMAs in ascending order of i.
// p: [rows, T E]; y: [rows, T D].
template <typename T>
void Mixture(const MixtureShape& shape, Panels<const T> x, Panels<const T> gates, Panels<T> p,
             Panels<T> y);

// dp_ti = dy_t . x_i,  dgates_ti = p_ti (dp_ti - sum over j of p_tj dp_tj),
// dx_i = sum over t of p_ti dy_t. Each sum is a product, then FMAs in ascending order.
template <typename T>
void MixtureBackward(const MixtureShape& shape, Panels<const T> x, Panels<const T> p,
                     Panels<const T> dy, Panels<T> dx, Panels<T> dgates);

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_MIXTURE_H_
