#ifndef ELASTOR_CORE_CUDA_MATMUL_CHECKS_H_
#define ELASTOR_CORE_CUDA_MATMUL_CHECKS_H_

#include <cstdint>

#include "core/base/log.h"
#include "core/cuda/matmul.h"

namespace elastor::cuda {

// Checks what matmul.h requires of a product, for every implementation. Returns false when there is
// nothing to compute.
template <typename In, typename Out>
bool CheckProduct(const Product<In, Out>& product) {
  CHECK_GE(product.m, 0);
  CHECK_GT(product.n, 0);
  CHECK_GT(product.k, 0);
  CHECK_GE(product.batch, 0);
  CHECK_GE(product.outer, 0);
  if (product.canonical_m > 0) CHECK_LE(product.m, product.canonical_m);
  if (product.canonical_problems > 0) {
    CHECK_LE(product.batch * product.outer, product.canonical_problems);
  }
  if (product.m == 0 || product.batch == 0 || product.outer == 0) return false;
  const bool many = product.batch > 1 || product.outer > 1;
  CHECK(product.bias == nullptr || !many) << "a bias goes with one problem";
  CHECK(!product.relu || product.bias != nullptr) << "rectified with a bias only";
  // So cuBLASLt's choice of an algorithm need not consider the bias's alignment, and kernels may
  // read several elements at once.
  CHECK_EQ(reinterpret_cast<uintptr_t>(product.bias) % 16, 0u) << "the bias is not aligned";
  CHECK(!product.c.transposed);
  CHECK(product.batch == 1 || product.c.batch_stride != 0);
  CHECK(product.outer == 1 || product.c.outer_stride != 0);
  CHECK_GE(product.a.row_stride, product.a.transposed ? product.m : product.k);
  CHECK_GE(product.b.row_stride, product.b.transposed ? product.k : product.n);
  CHECK_GE(product.c.row_stride, product.n);
  return true;
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_MATMUL_CHECKS_H_
