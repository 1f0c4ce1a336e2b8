#ifndef ELASTOR_CORE_CUDA_MATMUL_PLAN_H_
#define ELASTOR_CORE_CUDA_MATMUL_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/cuda/bfloat16.h"
#include "core/cuda/cublaslt.h"
#include "core/cuda/matmul.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

// NVIDIA's advice for compute capability 9.0 (cublasSetWorkspace's documentation).
inline constexpr size_t kMatmulWorkspaceBytes = size_t{32} << 20;

// A Problem is a Product whose element types are values; its operands stand in the order A, B, C.
inline constexpr int kOperands = 3;
struct Operand {
  cudaDataType_t type = CUDA_R_32F;
  int64_t element_bytes = 0;
  char* data = nullptr;
  int64_t rows = 0;  // rows of the matrix as stored
  int64_t columns = 0;
  int64_t canonical_rows = 0;
  int64_t canonical_columns = 0;
  int64_t row_stride = 0;  // elements, as all strides
  int64_t batch_stride = 0;
  int64_t outer_stride = 0;
  bool transposed = false;
};
struct Problem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  std::array<Operand, kOperands> operands;
  int64_t batch = 1;
  int64_t outer = 1;
  int64_t canonical_problems = 1;
  bool accumulate = false;
  const float* bias = nullptr;
  bool relu = false;
  Precision precision = Precision::kFloat32;
  SumOrder sums = SumOrder::kFixed;
};

// Everything that a plan depends on within one Matmul.
using PlanKey = std::array<int64_t, 8 + 8 * kOperands>;
PlanKey KeyOf(const Problem& problem);

// A cuBLASLt call prepared for one PlanKey.
class MatmulPlan {
 public:
  MatmulPlan(cublasLtHandle_t handle, Stream* stream, const Problem& problem);

  // REQUIRES: KeyOf(problem) equals the key of the problem that the plan was made for.
  void Run(cublasLtHandle_t handle, Stream& stream, void* workspace, const Problem& problem);

 private:
  // `count` problems; the matrices of operand i lie stride[i] elements apart.
  struct Level {
    int64_t count = 1;
    std::array<int64_t, kOperands> stride{};
  };

  void SplitLevels(const Problem& problem);
  void SetEpilogue(const Problem& problem);
  void SetBias(Stream& stream, const Problem& problem);
  void SetBatch(int64_t count);
  void ChooseAlgorithm(cublasLtHandle_t handle, const Problem& problem);
  bool Fits(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;

  cublaslt::Desc desc_;
  std::array<cublaslt::Layout, kOperands> layouts_;
  Level loop_;     // problems of this level are calls of their own
  Level strided_;  // problems of this level are strided batches
  int64_t batch_of_layouts_ = 0;
  cublasLtMatmulAlgo_t algorithm_{};
  Buffer<BFloat16> rounded_bias_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_MATMUL_PLAN_H_
