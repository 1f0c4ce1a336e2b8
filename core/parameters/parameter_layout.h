#ifndef ELASTOR_CORE_PARAMETERS_PARAMETER_LAYOUT_H_
#define ELASTOR_CORE_PARAMETERS_PARAMETER_LAYOUT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/leaves.h"

namespace elastor {

// Elements in a block of the flat parameter array. Buckets and the ranks' slices are cut at block
// boundaries, and the gradient norm is summed block by block, so that no number depends on how
// many ranks share the array.
inline constexpr int64_t kParameterBlock = 1024;

// The lambda of the L2 penalty that applies to a parameter.
enum class Decay { kNone, kDense, kEmbedding };

// Initial values: normal with standard deviation `stddev`, uniform in [0, `uniform`), or
// `constant`; plus `diagonal` where the two indices of a matrix are equal.
struct Init {
  double stddev = 0;
  double constant = 0;
  double diagonal = 0;
  double uniform = 0;
  // Returns the rule of Glorot & Bengio 2010: N(0, 2 / (fan_in + fan_out)).
  static Init XavierNormal(int64_t fan_in, int64_t fan_out);
  static Init Constant(double value) { return {.constant = value}; }
  static Init Uniform() { return {.uniform = 1}; }
};

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  Init init;
  Decay decay = Decay::kNone;
  bool statistic = false;
  int64_t offset = 0;  // offset in the flat array, in elements
  int64_t size = 0;
  int bucket = 0;
};

// Names, shapes and places of the dense parameters in one flat array (gradients and optimizer slots
// use the same places). Parameters are declared once while the model is built, in forward order;
// constant after Finish. The array is cut into buckets, ranges whose gradients become complete
// together in the backward pass: the last bucket first.
class ParameterLayout {
 public:
  // A bucket is closed once it holds at least this many elements.
  explicit ParameterLayout(int64_t bucket_elements = 128 * 1024);

  // Returns the parameter's index.
  int Declare(std::string name, std::vector<int64_t> shape, Init init, Decay decay);
  // Declares a running mean over batches. It is stored, exchanged and saved with the parameters,
  // but its "gradient" is the batch's value, towards which it moves (DenseOptimizer).
  int DeclareStatistic(std::string name, std::vector<int64_t> shape, double initial);
  void Finish();

  std::span<const ParameterInfo> parameters() const { return parameters_; }
  const ParameterInfo& operator[](int index) const { return parameters_[index]; }
  // Returns the index of a parameter. REQUIRES: a parameter of this name was declared.
  int Find(std::string_view name) const;
  std::span<const Range> buckets() const { return buckets_; }
  int64_t flat_size() const { return flat_size_; }     // multiple of kParameterBlock
  int64_t element_count() const { return elements_; }  // without padding and statistics

  // Writes initial values from Philox, keyed by (seed, name); padding is 0. values: flat_size()
  // elements.
  template <typename T>
  void Initialize(uint64_t seed, T* values) const;

 private:
  int64_t bucket_elements_;
  std::vector<ParameterInfo> parameters_;
  std::vector<Range> buckets_;
  int64_t flat_size_ = 0;
  int64_t elements_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_PARAMETERS_PARAMETER_LAYOUT_H_
