#include "trainer/step/cuda/batch_upload.h"

#include <algorithm>

namespace elastor::cuda {
namespace {

template <typename T>
int64_t Size(const std::vector<T>& values) {
  return static_cast<int64_t>(values.size());
}

}  // namespace

void BatchUpload::Begin(const LocalBatch& batch) {
  uploaded_.Synchronize();
  float* at = pinned_.Resize(Size(batch.numeric) + Size(batch.labels) + Size(batch.weights));
  const auto send = [&]<typename T>(const std::vector<T>& from, T* pinned, Buffer<T>* to) {
    std::copy(from.begin(), from.end(), pinned);
    Copy(*upload_, to->Resize(Size(from)), static_cast<const T*>(pinned), Size(from));
    return pinned + from.size();
  };
  at = send(batch.numeric, at, &numeric_);
  at = send(batch.labels, at, &labels_);
  send(batch.weights, at, &weights_);
  send(batch.lengths, pinned_lengths_.Resize(Size(batch.lengths)), &lengths_);
  uploaded_.Record(*upload_);
}

void BatchUpload::Finish(Stream& compute, float* numeric, float* labels, float* weights,
                         int32_t* lengths) {
  compute.Wait(uploaded_);
  const auto place = [&]<typename T>(const Buffer<T>& from, T* to) {
    Copy(compute, to, static_cast<const T*>(from.data()), from.size());
  };
  place(numeric_, numeric);
  place(labels_, labels);
  if (weights != nullptr) place(weights_, weights);
  place(lengths_, lengths);
}

}  // namespace elastor::cuda
