#include "core/cuda/matmul_plan.h"

#include <algorithm>
#include <string>

#include "core/base/log.h"
#include "core/cuda/bfloat16_rounding.h"
#include "core/cuda/device_error.h"

// Matrices here are row-major, cuBLAS's column-major: what is stored as X it sees as X^T. So
// C = A B is computed as C^T = B^T A^T: the operands change places and keep their transposition.

namespace elastor::cuda {
namespace {

using cublaslt::Check;
using cublaslt::Get;
using cublaslt::Set;

constexpr int kA = 0;
constexpr int kB = 1;
constexpr int kC = 2;

constexpr int kCandidates = 32;
// Problems of one call: some algorithms have the problems in a grid dimension that ends at 65535.
constexpr int64_t kMostProblems = int64_t{1} << 15;
// The algorithm (not documented, cuBLASLt 13) of products of a matrix and a vector, gemv2T and
// gemv2N. Some of its kernels cut their sums by how many results there are for the device's
// multiprocessors; others' measurements show it on a GB300 at k of 150 to 210 and more than
// 9728 results (github.com/facebookexperimental/triton, pull request 2768).
constexpr int32_t kVectorAlgorithm = 13;
// The widest access of any algorithm, in bytes.
constexpr int64_t kFullAlignment = 16;

int64_t AlignmentOf(int64_t address) {
  const int64_t lowest_bit = address & -address;
  return lowest_bit == 0 ? kFullAlignment : std::min(lowest_bit, kFullAlignment);
}

int64_t AlignmentOf(const Operand& operand) {
  const int64_t strides = operand.row_stride | operand.batch_stride | operand.outer_stride;
  return AlignmentOf(reinterpret_cast<int64_t>(operand.data) | strides * operand.element_bytes);
}

bool RoundsBias(const Problem& problem) {
  return problem.bias != nullptr && problem.operands[kC].type == CUDA_R_16BF;
}

// kFloat32 is plain FP32 arithmetic by CUBLAS_COMPUTE_32F too (IsAllowed refuses tensor cores).
// The pedantic type would only rule out what real FP32 products have not (3M products of complex
// matrices), and is offered fewer algorithms.
cublasComputeType_t ComputeType(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublaslt::Layout LayoutOf(const Operand& operand, int64_t rows, int64_t columns, int64_t batch,
                          int64_t stride) {
  return cublaslt::MakeLayout(operand.type, columns, rows, std::max(operand.row_stride, columns),
                              batch, stride);
}

// The problem that the algorithm is chosen for: matrices of the canonical sizes, packed one after
// the other whatever the strides between them.
cublaslt::Layout CanonicalLayout(const Operand& operand, int64_t problems) {
  const int64_t leading = std::max(operand.row_stride, operand.canonical_columns);
  return LayoutOf(operand, operand.canonical_rows, operand.canonical_columns,
                  std::min(problems, kMostProblems),
                  problems > 1 ? operand.canonical_rows * leading : 0);
}

std::string Describe(const Problem& problem) {
  const auto& [a, b, c] = problem.operands;
  const auto operand = [](const Operand& x) {
    return std::string(x.type == CUDA_R_16BF ? "bfloat16" : "float") +
           (x.transposed ? " transposed" : "") + ", row stride " + std::to_string(x.row_stride) +
           ", aligned to " + std::to_string(AlignmentOf(x));
  };
  return "matrix product of m " + std::to_string(problem.m) + ", n " + std::to_string(problem.n) +
         ", k " + std::to_string(problem.k) + ", " + std::to_string(problem.batch) + " x " +
         std::to_string(problem.outer) + " problems, canonical m " +
         std::to_string(c.canonical_rows) + ", canonical problems " +
         std::to_string(problem.canonical_problems) + "; A " + operand(a) + "; B " + operand(b) +
         "; C " + operand(c);
}

// Whether the algorithm is in the arithmetic that was asked for and, where the order of sums is
// fixed, makes every sum over k in one sequence. One that does not say so is refused.
bool IsAllowed(const cublasLtMatmulAlgo_t& algorithm, const Problem& problem) {
  const bool float_operands = problem.operands[kA].type == CUDA_R_32F;
  if (float_operands && problem.precision == Precision::kFloat32) {
    const auto flags = Get<uint64_t>(algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS);
    if (!flags || (*flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0) return false;
  }
  if (problem.sums == SumOrder::kAny) return true;
  const auto split = Get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  const auto scheme = Get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  return split && *split <= 1 && scheme && *scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

}  // namespace

PlanKey KeyOf(const Problem& problem) {
  PlanKey key{};
  int at = 0;
  for (const int64_t value :
       {problem.m, problem.n, problem.k, problem.batch, problem.outer, problem.canonical_problems,
        int64_t{problem.bias != nullptr}, int64_t{problem.relu}}) {
    key[at++] = value;
  }
  for (const Operand& operand : problem.operands) {
    for (const int64_t value :
         {static_cast<int64_t>(operand.type), operand.canonical_rows, operand.canonical_columns,
          operand.row_stride, operand.batch_stride, operand.outer_stride,
          int64_t{operand.transposed}, AlignmentOf(operand)}) {
      key[at++] = value;
    }
  }
  CHECK_EQ(at, static_cast<int>(key.size()));
  return key;
}

MatmulPlan::MatmulPlan(cublasLtHandle_t handle, Stream* stream, const Problem& problem)
    : desc_(cublaslt::MakeDesc(ComputeType(problem.precision))), rounded_bias_(stream) {
  const auto operation = [&](int operand) {
    return static_cast<int32_t>(problem.operands[operand].transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  Set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, operation(kB));
  Set(desc_, CUBLASLT_MATMUL_DESC_TRANSB, operation(kA));
  SetEpilogue(problem);
  SplitLevels(problem);
  batch_of_layouts_ = std::min(strided_.count, kMostProblems);
  for (int i = 0; i < kOperands; ++i) {
    const Operand& operand = problem.operands[i];
    layouts_[i] = LayoutOf(operand, operand.rows, operand.columns, batch_of_layouts_,
                           strided_.count > 1 ? strided_.stride[i] : 0);
  }
  ChooseAlgorithm(handle, problem);
}

// Both levels in one strided batch where every operand's strides allow, else a loop over the
// smaller.
void MatmulPlan::SplitLevels(const Problem& problem) {
  Level batch{problem.batch, {}};
  Level outer{problem.outer, {}};
  bool one_stride = true;
  for (int i = 0; i < kOperands; ++i) {
    const Operand& operand = problem.operands[i];
    batch.stride[i] = operand.batch_stride;
    outer.stride[i] = operand.outer_stride;
    one_stride = one_stride && operand.outer_stride == problem.batch * operand.batch_stride;
  }
  if (outer.count == 1) {
    strided_ = batch;
  } else if (batch.count == 1) {
    strided_ = outer;
  } else if (one_stride) {
    strided_ = batch;
    strided_.count = batch.count * outer.count;
  } else {
    loop_ = batch.count < outer.count ? batch : outer;
    strided_ = batch.count < outer.count ? outer : batch;
  }
}

void MatmulPlan::SetEpilogue(const Problem& problem) {
  if (problem.bias == nullptr) return;
  const cublasLtEpilogue_t epilogue =
      problem.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  Set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue));
  // cuBLASLt takes a bias of C's type only (CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), hence the
  // rounding.
  const cudaDataType_t type = RoundsBias(problem) ? CUDA_R_16BF : CUDA_R_32F;
  Set(desc_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type));
  // The choice of the algorithm may look at the address for its alignment; it never reads there.
  Set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(kFullAlignment));
  if (RoundsBias(problem)) rounded_bias_.Resize(problem.n);
}

void MatmulPlan::ChooseAlgorithm(cublasLtHandle_t handle, const Problem& problem) {
  std::array<cublaslt::Layout, kOperands> layouts;
  std::array<uint32_t, kOperands> alignments{};
  for (int i = 0; i < kOperands; ++i) {
    layouts[i] = CanonicalLayout(problem.operands[i], problem.canonical_problems);
    alignments[i] = static_cast<uint32_t>(AlignmentOf(problem.operands[i]));
  }
  const cublaslt::Preference preference = cublaslt::MakePreference();
  Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMatmulWorkspaceBytes});
  // Split sums are added in the type of the sums, never rounded to that of the result. Mask 0
  // leaves "no reduction scheme, dot-product shall be performed in one sequence" alone.
  const bool fixed = problem.sums == SumOrder::kFixed;
  Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(fixed ? CUBLASLT_REDUCTION_SCHEME_NONE
                                  : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[kB]);
  Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[kA]);
  Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[kC]);
  Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[kC]);

  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> candidates{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, desc_.get(), layouts[kB].get(), layouts[kA].get(), layouts[kC].get(),
      layouts[kC].get(), preference.get(), kCandidates, candidates.data(), &found);
  if (status != CUBLAS_STATUS_SUCCESS) Check(status, "no algorithm for a " + Describe(problem));
  const cublasLtMatmulAlgo_t* chosen = nullptr;
  std::string doubt = "one algorithm only";
  bool one_does_not_fit = false;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulAlgo_t& algorithm = candidates[i].algo;
    if (candidates[i].state != CUBLAS_STATUS_SUCCESS || !IsAllowed(algorithm, problem)) continue;
    const auto id = Get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID);
    const bool of_vectors = fixed && (!id || *id == kVectorAlgorithm);
    if (of_vectors && chosen != nullptr) continue;
    if (!Fits(handle, algorithm)) {
      one_does_not_fit |= !of_vectors;
      continue;
    }
    chosen = &algorithm;
    if (of_vectors) continue;
    doubt = fixed && one_does_not_fit ? "the algorithm of the whole batch does not fit" : "";
    break;
  }
  if (chosen == nullptr) {
    DieOfDevice("no algorithm " + std::string(fixed ? "without split sums " : "") + "for a " +
                Describe(problem));
  }
  if (!doubt.empty()) {
    LOG(WARNING) << "the bits may depend on the number of ranks: " << doubt << " for a "
                 << Describe(problem);
  }
  algorithm_ = *chosen;
}

// Whether the problem itself, not its canonical sizes, can be computed so.
bool MatmulPlan::Fits(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle, desc_.get(), layouts_[kB].get(), layouts_[kA].get(),
                              layouts_[kC].get(), layouts_[kC].get(), &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kMatmulWorkspaceBytes;
}

void MatmulPlan::SetBias(Stream& stream, const Problem& problem) {
  if (problem.bias == nullptr) return;
  const void* bias = problem.bias;
  if (RoundsBias(problem)) {
    RoundToBFloat16(stream, problem.bias, problem.n, rounded_bias_.data());
    bias = rounded_bias_.data();
  }
  Set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

void MatmulPlan::SetBatch(int64_t count) {
  if (count == batch_of_layouts_) return;
  batch_of_layouts_ = count;
  for (const cublaslt::Layout& layout : layouts_) {
    Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(count));
  }
}

void MatmulPlan::Run(cublasLtHandle_t handle, Stream& stream, void* workspace,
                     const Problem& problem) {
  SetBias(stream, problem);
  const float one = 1;
  const float keep = problem.accumulate ? 1 : 0;
  for (int64_t i = 0; i < loop_.count; ++i) {
    for (int64_t begin = 0; begin < strided_.count; begin += kMostProblems) {
      SetBatch(std::min(strided_.count - begin, kMostProblems));
      std::array<char*, kOperands> data;
      for (int x = 0; x < kOperands; ++x) {
        const Operand& operand = problem.operands[x];
        const int64_t offset = i * loop_.stride[x] + begin * strided_.stride[x];
        data[x] = operand.data + offset * operand.element_bytes;
      }
      const cublasStatus_t status = cublasLtMatmul(
          handle, desc_.get(), &one, data[kB], layouts_[kB].get(), data[kA], layouts_[kA].get(),
          &keep, data[kC], layouts_[kC].get(), data[kC], layouts_[kC].get(), &algorithm_, workspace,
          kMatmulWorkspaceBytes, internal::Handle(stream));
      if (status != CUBLAS_STATUS_SUCCESS) Check(status, Describe(problem));
    }
  }
}

}  // namespace elastor::cuda
