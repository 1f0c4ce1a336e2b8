#ifndef ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_
#define ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_

#include <cstdint>
#include <vector>

#include "core/kernels/cpu/vec.h"

namespace elastor {

// Matrices that are worked on side by side, one a vector lane. An element of all of them is
// kSpectrumLanes doubles in a row; a lane's bits do not depend on the others.
inline constexpr int64_t kSpectrumLanes = 16;
inline constexpr int64_t kGramLanes = 8;

// An array of doubles that begins with a cache line, so that no vector lies across two.
class LaneArray {
 public:
  explicit LaneArray(int64_t size) : lines_((size + kGramLanes - 1) / kGramLanes) {}
  double* data() { return lines_.data()->lanes; }
  const double* data() const { return lines_.data()->lanes; }
  double& operator[](int64_t i) { return data()[i]; }
  const double& operator[](int64_t i) const { return data()[i]; }

 private:
  struct alignas(64) Line {
    double lanes[kGramLanes] = {};
  };
  std::vector<Line> lines_;
};

// The arithmetic of Spectrum and SymmetricEigenvalues, compiled once for each instruction set
// (isa/); both give the same bits.
struct SpectrumKernels {
  // G = M M^T for M [rows][columns], of kGramLanes matrices after the others, so that they lie in
  // the first-level cache; of G the lower triangle, row after row, of all. Each element is one
  // chain of FMAs over ascending columns.
  void (*gram)(const double* m, int64_t rows, int64_t columns, double* lower);

  // SymmetricEigenvalues::Compute: eigenvalues [n], descending, of the matrices in lower, which is
  // overwritten. scratch: kEigenvalueScratch * n elements. False, and the eigenvalues meaningless,
  // when one takes more sweeps than ever happens.
  bool (*eigenvalues)(int64_t n, double* lower, double* eigenvalues, double* scratch);

  // singular_values[i] = sqrt(eigenvalues[i]), 0 for those not above n eps times the largest;
  // entropy_rank [1] = exp(-sum_i p_i log p_i), p_i = singular_values[i] / their sum. Sums run over
  // ascending i. All zero: meaningless.
  void (*entropy_rank)(int64_t n, const double* eigenvalues, double* singular_values,
                       double* entropy_rank);
};
inline constexpr int64_t kEigenvalueScratch = 3;

namespace v3 {
extern const SpectrumKernels kSpectrumKernels;
}
namespace v4 {
extern const SpectrumKernels kSpectrumKernels;
}

// Those of ActiveIsa().
const SpectrumKernels& ActiveSpectrumKernels();

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_
