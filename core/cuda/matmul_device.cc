#include <map>
#include <type_traits>

#include "core/cuda/cublaslt.h"
#include "core/cuda/device_error.h"
#include "core/cuda/matmul.h"
#include "core/cuda/matmul_checks.h"
#include "core/cuda/matmul_plan.h"

// Matrix products by cuBLASLt.

namespace elastor::cuda {

struct Matmul::State {
  State(Stream* stream, Precision precision, SumOrder sums)
      : stream(stream),
        precision(precision),
        sums(sums),
        workspace(stream, kMatmulWorkspaceBytes) {}

  Stream* stream;
  Precision precision;
  SumOrder sums;
  Buffer<char> workspace;
  cublaslt::Handle handle = cublaslt::MakeHandle();
  std::map<PlanKey, MatmulPlan> plans;
};

namespace {

template <typename T>
Operand MakeOperand(const Matrices<T>& matrices, int64_t rows, int64_t columns,
                    int64_t canonical_rows, int64_t canonical_columns) {
  Operand operand;
  operand.type = std::is_same_v<std::remove_const_t<T>, BFloat16> ? CUDA_R_16BF : CUDA_R_32F;
  operand.element_bytes = sizeof(T);
  operand.data = reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(matrices.data));
  operand.rows = matrices.transposed ? columns : rows;
  operand.columns = matrices.transposed ? rows : columns;
  operand.canonical_rows = matrices.transposed ? canonical_columns : canonical_rows;
  operand.canonical_columns = matrices.transposed ? canonical_rows : canonical_columns;
  operand.row_stride = matrices.row_stride;
  operand.batch_stride = matrices.batch_stride;
  operand.outer_stride = matrices.outer_stride;
  operand.transposed = matrices.transposed;
  return operand;
}

template <typename In, typename Out>
Problem MakeProblem(const Product<In, Out>& product, Precision precision, SumOrder sums) {
  const bool fixed = sums == SumOrder::kFixed;
  const int64_t m = fixed && product.canonical_m > 0 ? product.canonical_m : product.m;
  Problem problem;
  problem.m = product.m;
  problem.n = product.n;
  problem.k = product.k;
  problem.operands = {MakeOperand(product.a, product.m, product.k, m, product.k),
                      MakeOperand(product.b, product.k, product.n, product.k, product.n),
                      MakeOperand(product.c, product.m, product.n, m, product.n)};
  problem.batch = product.batch;
  problem.outer = product.outer;
  problem.canonical_problems = fixed && product.canonical_problems > 0
                                   ? product.canonical_problems
                                   : product.batch * product.outer;
  problem.accumulate = product.accumulate;
  problem.bias = product.bias;
  problem.relu = product.relu;
  problem.precision = precision;
  problem.sums = sums;
  return problem;
}

}  // namespace

Matmul::Matmul(Stream* stream, Precision precision, SumOrder sums)
    : state_(std::make_unique<State>(stream, precision, sums)) {}

Matmul::~Matmul() = default;

template <typename In, typename Out>
void Matmul::Run(const Product<In, Out>& product) {
  if (!CheckProduct(product)) return;
  internal::UseDevice();
  const Problem problem = MakeProblem(product, state_->precision, state_->sums);
  const auto [plan, inserted] =
      state_->plans.try_emplace(KeyOf(problem), state_->handle.get(), state_->stream, problem);
  plan->second.Run(state_->handle.get(), *state_->stream, state_->workspace.data(), problem);
}

template void Matmul::Run(const Product<float, float>&);
template void Matmul::Run(const Product<BFloat16, BFloat16>&);
template void Matmul::Run(const Product<BFloat16, float>&);

}  // namespace elastor::cuda
