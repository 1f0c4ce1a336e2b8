#ifndef ELASTOR_CORE_MODELS_DEEP_NETWORK_H_
#define ELASTOR_CORE_MODELS_DEEP_NETWORK_H_

#include "core/models/layers.h"

namespace elastor {

// Returns the deep network that the fields `hidden`, `batch_norm` and `dropout` of a model's
// configuration describe. outputs: as in MlpOptions.
template <typename Config>
MlpOptions DeepNetwork(const Config& config, int64_t inputs, int64_t outputs = 0) {
  MlpOptions deep;
  deep.inputs = inputs;
  deep.hidden.assign(config.hidden().begin(), config.hidden().end());
  deep.outputs = outputs;
  if (config.batch_norm()) deep.hidden_norm = MlpOptions::HiddenNorm::kBatch;
  deep.dropout = config.dropout();
  return deep;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_DEEP_NETWORK_H_
