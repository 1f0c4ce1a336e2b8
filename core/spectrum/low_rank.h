#ifndef ELASTOR_CORE_SPECTRUM_LOW_RANK_H_
#define ELASTOR_CORE_SPECTRUM_LOW_RANK_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// A matrix X [tokens, width] as the sum of its terms sigma_i u_i v_i', largest sigma first: the sum
// of the first k is its best approximation of rank k (Eckart and Young 1936). By Jacobi rotations
// of one side (Hestenes 1958), in double and in one order of operations: the same bits everywhere.
class LowRank {
 public:
  LowRank(int64_t tokens, int64_t width);
  int64_t max_rank() const { return short_side_; }  // min(tokens, width)

  // x: row-major. If an element of x is not finite, the terms are not finite either.
  void Decompose(std::span<const double> x);
  // Adds a term of the last matrix: x += sigma_i u_i v_i', i < max_rank().
  void AddTerm(int64_t i, std::span<double> x) const;

 private:
  // Makes columns p and q of products_ orthogonal. Returns whether they were not orthogonal before.
  bool Rotate(int64_t p, int64_t q);

  const int64_t tokens_;
  const int64_t width_;
  const int64_t short_side_;
  const int64_t long_side_;
  // Columns, one after another: sigma_i u_i [short_side][long_side], v_i [short_side][short_side],
  // and the order of falling sigma.
  std::vector<double> products_;
  std::vector<double> vectors_;
  std::vector<int64_t> order_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_LOW_RANK_H_
