#include "trainer/step/cuda/batch_upload.h"

#include <algorithm>

namespace elastor::cuda {
namespace {

int64_t Size(const std::vector<float>& values) { return static_cast<int64_t>(values.size()); }

}  // namespace

void BatchUpload::Begin(const LocalBatch& batch) {
  uploaded_.Synchronize();
  float* at = pinned_.Resize(Size(batch.numeric) + Size(batch.labels) + Size(batch.weights));
  const auto send = [&](const std::vector<float>& from, Buffer<float>* to) {
    std::copy(from.begin(), from.end(), at);
    Copy(*upload_, to->Resize(Size(from)), static_cast<const float*>(at), Size(from));
    at += from.size();
  };
  send(batch.numeric, &numeric_);
  send(batch.labels, &labels_);
  send(batch.weights, &weights_);
  uploaded_.Record(*upload_);
}

void BatchUpload::Finish(Stream& compute, float* numeric, float* labels, float* weights) {
  compute.Wait(uploaded_);
  const auto place = [&](const Buffer<float>& from, float* to) {
    Copy(compute, to, static_cast<const float*>(from.data()), from.size());
  };
  place(numeric_, numeric);
  place(labels_, labels);
  if (weights != nullptr) place(weights_, weights);
}

}  // namespace elastor::cuda
