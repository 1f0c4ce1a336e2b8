#ifndef ELASTOR_TRAINER_DENSE_OPTIMIZER_H_
#define ELASTOR_TRAINER_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/thread_pool.h"
#include "core/parameters/parameter_layout.h"
#include "embedding/sparse_optimizer.h"

namespace elastor {

struct DenseOptimizerOptions {
  SparseOptimizerOptions rule;  // SGD, Adagrad or Adam, applied to blocks; its l2 is not used
  double dense_l2 = 0;          // lambda of parameters with Decay::kDense
  double embedding_l2 = 0;      // lambda of parameters with Decay::kEmbedding
};

// The optimizer of the dense parameters on the slices this rank owns (its slots exist only there).
// Formulas: docs/models.md; the same as PyTorch's. A step: gradient() filled with the summed
// gradients, AddL2, Update.
template <typename T>
class DenseOptimizer {
 public:
  // slices: of every bucket, in order; whole blocks of kParameterBlock. pool outlives the object.
  DenseOptimizer(const DenseOptimizerOptions& options, const ParameterLayout& layout,
                 std::span<const Range> slices, ThreadPool* pool);

  // The gradient of slice `bucket`, from its first element.
  T* gradient(int bucket) { return gradient_.data() + first_block_[bucket] * kParameterBlock; }

  // g += lambda w. Adds sum g^2 to *squared_norm and sum lambda/2 w^2 to *penalty, block by block.
  void AddL2(const T* weights, ExactSum* squared_norm, ExactSum* penalty);

  // Updates this rank's slices of the flat array with gradient scale * g; step counts from 1.
  void Update(double scale, double learning_rate, int64_t step, T* weights);

  // Adds the elements of owned slices with their slots, by blocks: record (name "dense", block).
  void AddToDigest(const T* weights, Digest* digest) const;

 private:
  // A run of one owned block that belongs to one parameter with lambda > 0.
  struct Decayed {
    int64_t offset;  // in the block
    int64_t size;
    T lambda;
  };
  // One whole block of an owned slice; block i has gradient and slots at i times their block size.
  struct Block {
    int64_t global;  // of its first element, in the flat array
    std::vector<Decayed> decayed;
  };

  DenseOptimizerOptions options_;
  ThreadPool* pool_;
  int64_t slot_elements_;  // of a block
  std::vector<Block> blocks_;
  std::vector<int64_t> first_block_;  // of every bucket's slice
  std::vector<T> gradient_;
  std::vector<T> slots_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DENSE_OPTIMIZER_H_
