#include "trainer/dense_optimizer.h"

#include <algorithm>
#include <mutex>

#include "embedding/row_math.h"
#include "embedding/row_optimizer.h"
#include "glog/logging.h"

namespace elastor {
namespace {

double LambdaOf(const DenseOptimizerOptions& options, Decay decay) {
  if (decay == Decay::kDense) return options.dense_l2;
  return decay == Decay::kEmbedding ? options.embedding_l2 : 0;
}

}  // namespace

template <typename T>
DenseOptimizer<T>::DenseOptimizer(const DenseOptimizerOptions& options,
                                  const ParameterLayout& layout, std::span<const Range> slices,
                                  ThreadPool* pool)
    : options_(options),
      pool_(pool),
      slot_elements_(SlotElements(options.rule.kind, kParameterBlock)) {
  for (const Range& slice : slices) {
    CHECK_EQ(slice.size() % kParameterBlock, 0);
    first_block_.push_back(static_cast<int64_t>(blocks_.size()));
    for (int64_t at = slice.begin; at < slice.end; at += kParameterBlock) {
      blocks_.push_back({at, {}});
    }
  }
  for (const ParameterInfo& p : layout.parameters()) {
    const double lambda = LambdaOf(options, p.decay);
    if (lambda == 0) continue;
    for (Block& block : blocks_) {
      const int64_t begin = std::max(p.offset, block.global);
      const int64_t end = std::min(p.offset + p.size, block.global + kParameterBlock);
      if (begin >= end) continue;
      block.decayed.push_back({begin - block.global, end - begin, static_cast<T>(lambda)});
    }
  }
  gradient_.resize(blocks_.size() * kParameterBlock);
  const bool adagrad = options.rule.kind == SparseOptimizerKind::kAdagrad;
  slots_.assign(blocks_.size() * slot_elements_,
                adagrad ? static_cast<T>(options.rule.initial_accumulator) : T{0});
}

template <typename T>
void DenseOptimizer<T>::AddL2(const T* weights, ExactSum* squared_norm, ExactSum* penalty) {
  std::mutex mutex;
  pool_->ParallelFor(blocks_.size(), 1, [&](int, int64_t begin, int64_t end) {
    ExactSum norm;
    ExactSum decay;
    for (int64_t i = begin; i < end; ++i) {
      T* const g = gradient_.data() + i * kParameterBlock;
      const T* const w = weights + blocks_[i].global;
      for (const Decayed& run : blocks_[i].decayed) {
        for (int64_t j = run.offset; j < run.offset + run.size; ++j) g[j] += run.lambda * w[j];
        decay.Add(0.5 * static_cast<double>(run.lambda) * SumOfSquares(w + run.offset, run.size));
      }
      norm.Add(SumOfSquares(g, kParameterBlock));
    }
    const std::lock_guard<std::mutex> lock(mutex);
    squared_norm->Merge(norm);
    penalty->Merge(decay);
  });
}

template <typename T>
void DenseOptimizer<T>::Update(double scale, double learning_rate, int64_t step, T* weights) {
  WithOptimizer<T>(options_.rule, learning_rate, step, [&](const auto& rule) {
    pool_->ParallelFor(blocks_.size(), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        rule(kParameterBlock, static_cast<T>(scale), gradient_.data() + i * kParameterBlock,
             weights + blocks_[i].global, slots_.data() + i * slot_elements_);
      }
    });
  });
}

template <typename T>
void DenseOptimizer<T>::AddToDigest(const T* weights, Digest* digest) const {
  const uint64_t weight_seed = Digest::NameSeed("dense");
  const uint64_t slot_seed = Digest::NameSeed("dense/slots");
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const uint64_t row = blocks_[i].global / kParameterBlock;
    digest->AddHashed(weight_seed, row, weights + blocks_[i].global, kParameterBlock * sizeof(T));
    if (slot_elements_ == 0) continue;
    digest->AddHashed(slot_seed, row, slots_.data() + i * slot_elements_,
                      slot_elements_ * sizeof(T));
  }
}

template class DenseOptimizer<float>;
template class DenseOptimizer<double>;

}  // namespace elastor
