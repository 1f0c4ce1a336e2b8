#include "trainer/step/dense_optimizer.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/base/canonical_flush.h"
#include "core/base/log.h"
#include "core/optimizer/sum_of_squares.h"
#include "core/optimizer/with_rule.h"

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
      blocks_.push_back({at, {}, {}, {}});
    }
  }
  first_block_.push_back(static_cast<int64_t>(blocks_.size()));
  for (const ParameterInfo& p : layout.parameters()) {
    const double lambda = LambdaOf(options, p.decay);
    const bool shrinks = options.decoupled_decay > 0 && p.decay == Decay::kDense;
    if (lambda == 0 && !p.statistic && !shrinks) continue;
    for (Block& block : blocks_) {
      const int64_t begin = std::max(p.offset, block.global);
      const int64_t end = std::min(p.offset + p.size, block.global + kParameterBlock);
      if (begin >= end) continue;
      const Range run = {begin - block.global, end - block.global};
      if (p.statistic) block.statistics.push_back(run);
      if (shrinks) block.shrinking.push_back(run);
      if (lambda != 0) {
        block.decayed.push_back({run.begin, run.size(), static_cast<T>(lambda)});
      }
    }
  }
  gradient_.resize(blocks_.size() * kParameterBlock);
  slots_.resize(blocks_.size() * slot_elements_);
  ResetSlots();
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
        for (int64_t j = run.offset; j < run.offset + run.size; ++j)
          g[j] += CanonicalProduct(run.lambda, w[j]);
        decay.Add(0.5 * static_cast<double>(run.lambda) * SumOfSquares(w + run.offset, run.size));
      }
      norm.Add(SquaredNorm(blocks_[i], g));
    }
    const std::lock_guard<std::mutex> lock(mutex);
    squared_norm->Merge(norm);
    penalty->Merge(decay);
  });
}

template <typename T>
double DenseOptimizer<T>::SquaredNorm(const Block& block, const T* gradient) {
  if (block.statistics.empty()) return SumOfSquares(gradient, kParameterBlock);
  std::array<T, kParameterBlock> without;
  std::copy_n(gradient, kParameterBlock, without.begin());
  for (const Range& run : block.statistics) {
    std::fill(without.begin() + run.begin, without.begin() + run.end, T{0});
  }
  return SumOfSquares(without.data(), kParameterBlock);
}

template <typename T>
void DenseOptimizer<T>::MoveStatistics(const Block& block, T* gradient, T* weights) {
  constexpr T kMomentum = static_cast<T>(kStatisticMomentum);
  for (const Range& run : block.statistics) {
    for (int64_t i = run.begin; i < run.end; ++i) {
      weights[i] =
          CanonicalProduct(1 - kMomentum, weights[i]) + CanonicalProduct(kMomentum, gradient[i]);
      gradient[i] = 0;
    }
  }
}

template <typename T>
void DenseOptimizer<T>::Shrink(const Block& block, T kept, T* weights) {
  for (const Range& run : block.shrinking) {
    for (int64_t i = run.begin; i < run.end; ++i) weights[i] = CanonicalProduct(weights[i], kept);
  }
}

template <typename T>
void DenseOptimizer<T>::Update(double scale, double learning_rate, int64_t step, T* weights) {
  const T kept = static_cast<T>(1 - learning_rate * options_.decoupled_decay);
  WithRule<T>(options_.rule, learning_rate, step, [&](const auto& rule) {
    pool_->ParallelFor(blocks_.size(), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* const g = gradient_.data() + i * kParameterBlock;
        T* const w = weights + blocks_[i].global;
        MoveStatistics(blocks_[i], g, w);
        Shrink(blocks_[i], kept, w);
        rule(kParameterBlock, static_cast<T>(scale), g, w, slots_.data() + i * slot_elements_);
      }
    });
  });
}

template <typename T>
void DenseOptimizer<T>::CopySlot(int64_t slot, int bucket, T* values) const {
  for (int64_t i = first_block_[bucket]; i < first_block_[bucket + 1]; ++i) {
    const T* const from = slots_.data() + i * slot_elements_ + slot * kParameterBlock;
    values = std::copy_n(from, kParameterBlock, values);
  }
}

template <typename T>
void DenseOptimizer<T>::SetSlot(int64_t slot, int bucket, const T* values) {
  for (int64_t i = first_block_[bucket]; i < first_block_[bucket + 1]; ++i) {
    T* const to = slots_.data() + i * slot_elements_ + slot * kParameterBlock;
    std::copy_n(values, kParameterBlock, to);
    values += kParameterBlock;
  }
}

template <typename T>
void DenseOptimizer<T>::ResetSlots() {
  std::fill(slots_.begin(), slots_.end(), static_cast<T>(InitialSlot(options_.rule)));
}

template class DenseOptimizer<float>;
template class DenseOptimizer<double>;

}  // namespace elastor
