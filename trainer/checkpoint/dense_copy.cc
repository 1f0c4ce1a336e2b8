#include "trainer/checkpoint/dense_copy.h"

#include <algorithm>
#include <utility>

#include "collective/dense_reduce.h"
#include "core/base/log.h"
#include "trainer/checkpoint/digest_records.h"
#include "xxhash.h"

namespace elastor {
namespace {

// Elements of the flat array that `rank` owns.
int64_t OwnedElements(const ParameterLayout& layout, int rank, int ranks) {
  int64_t elements = 0;
  for (const Range& bucket : layout.buckets()) elements += SliceOfRank(bucket, rank, ranks).size();
  return elements;
}

// This rank's slices of all slots, bucket by bucket.
std::vector<float> PackSlots(const StateView& state, int rank, int ranks) {
  const int64_t slots = state.optimizer->slots();
  std::vector<float> packed(slots * OwnedElements(*state.layout, rank, ranks));
  float* to = packed.data();
  const std::span<const Range> buckets = state.layout->buckets();
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (int64_t slot = 0; slot < slots; ++slot) {
      state.optimizer->CopySlot(slot, static_cast<int>(b), to);
      to += SliceOfRank(buckets[b], rank, ranks).size();
    }
  }
  return packed;
}

}  // namespace

StatusOr<DenseCopy> DenseCopy::Gather(const StateView& state, Contents contents,
                                      Communicator& communicator) {
  const int ranks = communicator.size();
  const bool root = communicator.rank() == 0;
  const ParameterLayout& layout = *state.layout;
  DenseCopy copy;
  ELASTOR_ASSIGN_OR_RETURN(const float* const weights, state.weights());
  if (root) {
    copy.layout_ = &layout;
    copy.arrays_.emplace_back(weights, weights + layout.flat_size());
  }
  if (contents == Contents::kWeights) return copy;

  const std::vector<std::string> names = SlotNames(state.optimizer->kind());
  const int64_t slots = state.optimizer->slots();
  CHECK_EQ(static_cast<int64_t>(names.size()), slots);
  const std::vector<float> packed = PackSlots(state, communicator.rank(), ranks);
  std::vector<int64_t> send(ranks, 0);
  std::vector<int64_t> receive(ranks, 0);
  send[0] = static_cast<int64_t>(packed.size() * sizeof(float));
  for (int r = 0; r < ranks && root; ++r) {
    receive[r] = slots * OwnedElements(layout, r, ranks) * static_cast<int64_t>(sizeof(float));
  }
  std::vector<float> received(root ? slots * layout.flat_size() : 0);
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllToAllV(Phase::kSetup, packed.data(), send, received.data(), receive));
  if (!root) return copy;
  copy.slot_names_ = names;
  copy.arrays_.resize(1 + slots, std::vector<float>(layout.flat_size()));
  const float* from = received.data();
  for (int r = 0; r < ranks; ++r) {
    for (const Range& bucket : layout.buckets()) {
      const Range slice = SliceOfRank(bucket, r, ranks);
      for (int64_t slot = 0; slot < slots; ++slot, from += slice.size()) {
        std::copy_n(from, slice.size(), copy.arrays_[1 + slot].data() + slice.begin);
      }
    }
  }
  return copy;
}

void DenseCopy::ForEachTensor(
    const std::function<void(const TensorSpec&, std::span<const float>)>& fn) const {
  if (layout_ == nullptr) return;
  for (const ParameterInfo& p : layout_->parameters()) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const std::string name = i == 0 ? p.name : p.name + "/" + slot_names_[i - 1];
      fn({name, TensorType::kF32, p.shape},
         std::span(arrays_[i]).subspan(p.offset, static_cast<size_t>(p.size)));
    }
  }
}

void DenseCopy::AddToDigest(Digest* digest) const {
  ForEachTensor([&](const TensorSpec& tensor, std::span<const float> values) {
    AddDenseTensor(tensor.name, values, digest);
  });
}

StatusOr<DenseFile> DenseCopy::Write(const std::string& path) const {
  CHECK(layout_ != nullptr) << "the dense parameters are on rank 0";
  std::vector<TensorSpec> tensors;
  ForEachTensor([&](const TensorSpec& tensor, auto) { tensors.push_back(tensor); });
  ELASTOR_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Open(path, tensors));
  DenseFile file;
  Status status;
  ForEachTensor([&](const TensorSpec& tensor, std::span<const float> values) {
    file.tensors[tensor.name] = XXH3_64bits(values.data(), values.size_bytes());
    if (status.ok()) status = writer.Append(values);
  });
  ELASTOR_RETURN_IF_ERROR(status);
  ELASTOR_ASSIGN_OR_RETURN(file.facts, writer.Commit());
  return file;
}

void SetDenseSlot(const StateView& state, const ParameterInfo& parameter, int64_t slot,
                  std::span<const float> values, const Communicator& communicator) {
  const Range slice = SliceOfRank(state.layout->buckets()[parameter.bucket], communicator.rank(),
                                  communicator.size());
  const int64_t begin = std::max(slice.begin, parameter.offset);
  const int64_t end = std::min(slice.end, parameter.offset + parameter.size);
  if (begin >= end) return;
  std::vector<float> own(slice.size());
  state.optimizer->CopySlot(slot, parameter.bucket, own.data());
  std::copy_n(values.data() + (begin - parameter.offset), end - begin,
              own.data() + (begin - slice.begin));
  state.optimizer->SetSlot(slot, parameter.bucket, own.data());
}

}  // namespace elastor
