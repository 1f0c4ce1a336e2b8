#ifndef ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_
#define ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_

#include <cstdint>
#include <vector>

#include "core/kernels/cpu/vec.h"

namespace elastor {

// The number of matrices processed side by side, one a vector lane. One element of all matrices is
// kSpectrumLanes consecutive doubles; a lane's bits do not depend on the other lanes.
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
  // Computes G = M M^T for M [rows][columns]. kGramLanes matrices are processed at a time, so that
  // they fit the first-level cache. The result is the lower triangle of every G, row after row.
  // Each element is one chain of FMAs over ascending columns.
  void (*gram)(const double* m, int64_t rows, int64_t columns, double* lower);

  // SymmetricEigenvalues::Compute: eigenvalues [n], descending, of the matrices in lower, which is
  // overwritten. scratch: kEigenvalueScratch * n elements. Returns false, and meaningless
  // eigenvalues, if one takes more sweeps than ever happens in practice.
  bool (*eigenvalues)(int64_t n, double* lower, double* eigenvalues, double* scratch);

  // singular_values[i] = sqrt(eigenvalues[i]), 0 for those not above n eps times the largest;
  // entropy_rank [1] = exp(-sum_i p_i log p_i), p_i = singular_values[i] / their sum. Sums run over
  // ascending i. entropy_rank is meaningless if all eigenvalues are 0.
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
namespace neon {
extern const SpectrumKernels kSpectrumKernels;
}

// Returns the kernels of ActiveIsa().
const SpectrumKernels& ActiveSpectrumKernels();

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SPECTRUM_KERNELS_H_
