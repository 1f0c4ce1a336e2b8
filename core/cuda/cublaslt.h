#ifndef ELASTOR_CORE_CUDA_CUBLASLT_H_
#define ELASTOR_CORE_CUDA_CUBLASLT_H_

// cuBLASLt's objects with owners, for matmul's device sources only.

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/cuda/runtime.h"

namespace elastor::cuda::cublaslt {

inline void Check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  DieOfDevice(what + ": " + cublasLtGetStatusName(status));
}

struct Destroy {
  void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
  void operator()(cublasLtMatmulDesc_t desc) const { cublasLtMatmulDescDestroy(desc); }
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};

using Handle = std::unique_ptr<cublasLtContext, Destroy>;
using Desc = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy>;

inline Handle MakeHandle() {
  cublasLtHandle_t handle = nullptr;
  Check(cublasLtCreate(&handle), "cublasLtCreate");
  return Handle(handle);
}

// Values have the type that cublasLt.h names beside the attribute; another size is refused.
template <typename T>
void Set(const Desc& desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  Check(cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

template <typename T>
void Set(const Layout& layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  Check(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof(value)),
        "cublasLtMatrixLayoutSetAttribute");
}

template <typename T>
void Set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  Check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

inline Desc MakeDesc(cublasComputeType_t compute_type) {
  cublasLtMatmulDesc_t desc = nullptr;
  Check(cublasLtMatmulDescCreate(&desc, compute_type, CUDA_R_32F), "cublasLtMatmulDescCreate");
  return Desc(desc);
}

// Returns the layout of column-major matrices [rows, columns], columns `leading` elements apart,
// matrices `stride` apart.
inline Layout MakeLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading,
                         int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t created = nullptr;
  Check(cublasLtMatrixLayoutCreate(&created, type, rows, columns, leading),
        "cublasLtMatrixLayoutCreate");
  Layout layout(created);
  Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
  Set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  return layout;
}

inline Preference MakePreference() {
  cublasLtMatmulPreference_t preference = nullptr;
  Check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  return Preference(preference);
}

// Returns the attribute's value, or nothing if the library does not know the attribute for this
// algorithm.
template <typename T>
std::optional<T> Get(const cublasLtMatmulAlgo_t& algorithm,
                     cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = 0;
  size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof(value)) return std::nullopt;
  return value;
}

template <typename T>
std::optional<T> Get(const cublasLtMatmulAlgo_t& algorithm,
                     cublasLtMatmulAlgoCapAttributes_t attribute) {
  T value = 0;
  size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoCapGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof(value)) return std::nullopt;
  return value;
}

}  // namespace elastor::cuda::cublaslt

#endif  // ELASTOR_CORE_CUDA_CUBLASLT_H_
