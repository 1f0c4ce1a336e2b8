#ifndef ELASTOR_TESTS_EMBEDDING_CUDA_DEVICE_RANK_H_
#define ELASTOR_TESTS_EMBEDDING_CUDA_DEVICE_RANK_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/cuda/device_communicator.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/device_embedding.h"
#include "tests/core/cuda/device_arrays.h"
#include "tests/embedding/embedding_batches.h"

namespace elastor::cuda {

using Rows = std::vector<std::vector<float>>;  // [row][feature]

// One rank of a job on the device, with the calls of a step made easy.
class DeviceRank {
 public:
  DeviceRank(DeviceEmbedding::Options options, const ShardPlan* plan, Communicator* host)
      : leaves_(options.leaves),
        fields_(static_cast<int64_t>(options.fields.size())),
        communicator_(MakeHostDeviceCommunicator(host)),
        pool_(1 + host->rank() % 2),
        embedding_(std::move(options), plan, communicator_.get(), &compute_, &route_, &pool_) {
    for (auto& routing : routings_) routing = embedding_.MakeRouting();
  }

  DeviceEmbedding& embedding() { return embedding_; }

  // The batch of the next Lookup: may come before the training of the batch looked up last. Every
  // other one was staged before, as the second before it was.
  Status RouteIds(const GlobalBatch& batch) {
    SparseBatch own =
        RankBatch(batch, fields_, communicator_->rank(), communicator_->size(), leaves_);
    if (routed_++ % 2 == 0) own.staged = embedding_.StageIds(own, std::move(staged_));
    const Status status = embedding_.RouteIds(own, routings_[1 - current_].get());
    if (own.staged != nullptr) staged_ = std::move(own.staged);
    return status;
  }

  // Local rows of a batch lie leaf after leaf, each leaf padded to the longest of the batch.
  void Place(const GlobalBatch& batch) {
    const Range owned = LeavesOfRank(communicator_->rank(), communicator_->size(), leaves_);
    int64_t leaf_rows = 0;
    for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
      leaf_rows = std::max(leaf_rows, RowsOfLeaf(leaf, leaves_, batch.rows()).size());
    }
    first_row_ = RowsOfLeaf(owned.begin, leaves_, batch.rows()).begin;
    local_row_.assign(owned.size() * leaf_rows, -1);
    device_row_.clear();
    for (int64_t leaf = owned.begin; leaf < owned.end; ++leaf) {
      for (int64_t i = 0; i < RowsOfLeaf(leaf, leaves_, batch.rows()).size(); ++i) {
        const int64_t device_row = (leaf - owned.begin) * leaf_rows + i;
        local_row_[device_row] = static_cast<int32_t>(device_row_.size());
        device_row_.push_back(static_cast<int32_t>(device_row));
      }
    }
  }
  int64_t first_row() const { return first_row_; }  // of the batch
  int64_t rows() const { return static_cast<int64_t>(device_row_.size()); }

  // Activations follow so many other features in memory: from here on.
  void set_features_before(int64_t features) { before_ = features; }

  // The pooled activations of local rows. Padding must be zero, and what lies around unchanged.
  template <typename A>
  Rows ReturnRows() {
    const Buffer<int32_t> local_row = Upload(compute_, local_row_);
    const int64_t features = embedding_.output_features();
    const int64_t stride = before_ + features;
    const auto device_rows = static_cast<int64_t>(local_row_.size());
    const Buffer<A> memory = Upload(compute_, std::vector<A>(device_rows * stride, A(7.0f)));
    embedding_.ReturnRows<A>(*routings_[current_], local_row.data(),
                             View(Activations<A>::RowMajor(memory.data(), device_rows, 1, stride)));
    const std::vector<A> values = Download(compute_, memory);
    Rows e(rows(), std::vector<float>(features));
    for (int64_t i = 0; i < device_rows * stride; ++i) {
      const auto value = static_cast<float>(values[i]);
      const int64_t feature = i % stride - before_;
      const int32_t row = local_row_[i / stride];
      if (feature < 0) {
        CHECK_EQ(value, 7);
      } else if (row < 0) {
        CHECK_EQ(value, 0);
      } else {
        e[row][feature] = value;
      }
    }
    return e;
  }

  struct Sums {
    ExactSum gradients, weights;
  };

  // What a training step reads and writes, in device memory.
  template <typename A>
  struct StepMemory {
    int64_t global_rows;
    Buffer<A> de;
    Buffer<int32_t> device_row;
    Buffer<UpdateGate> gate;
    Buffer<DeviceExactSum> sums;
  };

  // de: of the whole batch that was placed last.
  template <typename A>
  StepMemory<A> Prepare(const Rows& de, const UpdateGate& gate) {
    const int64_t features = embedding_.output_features();
    const int64_t stride = before_ + features;
    std::vector<A> memory(std::max<int64_t>(local_row_.size() * stride, 1), A(7.0f));
    for (int64_t row = 0; row < rows(); ++row) {
      for (int64_t f = 0; f < features; ++f) {
        memory[device_row_[row] * stride + before_ + f] = A(de[first_row_ + row][f]);
      }
    }
    return {static_cast<int64_t>(de.size()), Upload(compute_, memory),
            Upload(compute_, device_row_), Upload(compute_, std::vector<UpdateGate>{gate}),
            Buffer<DeviceExactSum>(&compute_, 2)};
  }

  // Gradients, and the update when the gate is open; waits for nothing.
  template <typename A>
  void Enqueue(const StepMemory<A>& memory, double learning_rate, int64_t step) {
    const int64_t stride = before_ + embedding_.output_features();
    const auto de = View(Activations<const A>::RowMajor(
        memory.de.data(), stride == 0 ? 0 : memory.de.size() / stride, 1, stride));
    ClearExactSums(compute_, memory.sums.data(), 2);
    CHECK(embedding_
              .RouteGradients<A>(memory.global_rows, memory.device_row.data(), de,
                                 routings_[current_].get(), memory.sums.data(),
                                 memory.sums.data() + 1)
              .ok());
    embedding_.Update(memory.gate.data(), learning_rate, step, routings_[current_].get());
  }

  template <typename A>
  Sums SumsOf(const StepMemory<A>& memory) {
    const std::vector<DeviceExactSum> found = Download(compute_, memory.sums);
    return {ToExactSum(found[0]), ToExactSum(found[1])};
  }

  template <typename A>
  Sums Train(const Rows& de, const UpdateGate& gate, double learning_rate, int64_t step) {
    const StepMemory<A> memory = Prepare<A>(de, gate);
    Enqueue(memory, learning_rate, step);
    return SumsOf(memory);
  }

  Status Lookup(DeviceEmbedding::Purpose purpose) {
    current_ = 1 - current_;
    return embedding_.Lookup(purpose, routings_[current_].get());
  }

 private:
  template <typename A>
  Activations<A> View(Activations<A> all) const {
    return all.Slice(before_, all.features - before_);
  }

  int64_t leaves_;
  int64_t fields_;
  std::unique_ptr<DeviceCommunicator> communicator_;
  Stream compute_, route_;
  ThreadPool pool_;
  DeviceEmbedding embedding_;
  std::unique_ptr<DeviceEmbedding::Routing> routings_[2];
  int current_ = 0;
  int routed_ = 0;
  std::unique_ptr<StagedIds> staged_;
  std::vector<int32_t> local_row_, device_row_;
  int64_t first_row_ = 0;
  int64_t before_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_TESTS_EMBEDDING_CUDA_DEVICE_RANK_H_
